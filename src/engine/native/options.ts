import { type AdapterConfig, projections } from "../../model-files/adapter-config.ts"
import { type AdapterLayout, adapterLayout, unmatchedNames } from "../../model-files/adapter-layout.ts"
import type { ModelConfig } from "../../model-files/model-config.ts"
import {
  type NativeDeviceReport,
  type NativeEngineOptions,
  type NativeMemoryPlan,
  native,
} from "../../native/native.ts"
import { boolean, field, integer, list, number, oneOf, optionalGroup, required, string } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { Field, OptionsOf } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import { checkModelConfig, leastPositions } from "../check-arguments.ts"

type Names = readonly string[] | string | undefined

/** Names of modules, or a regular expression. */
function names<const Help extends string>(help: Help, otherwise: string) {
  const problem = (value: unknown) =>
    isText(value) || (Array.isArray(value) && value.length > 0 && value.every(isText))
      ? undefined
      : "must be a list of names, or a regular expression"
  return field<Names, Help>(undefined, help, problem, { defaultText: otherwise })
}

/** Numbers by names of modules. */
function byName<const Help extends string>(help: Help, wanted: string, fits: (value: unknown) => boolean) {
  const problem = (value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every(fits)
      ? undefined
      : `must be an object of names and ${wanted}`
  return field<Readonly<Record<string, number>> | undefined, Help>(undefined, help, problem, { defaultText: "none" })
}

const isText = (value: unknown) => typeof value === "string" && value.trim() !== ""
const isRank = (value: unknown) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= mostRank
const isAlpha = (value: unknown) => Number.isFinite(value) && (value as number) > 0
const mostRank = 65536

/** A list that need not be given. */
function optionalList<T, const Help extends string>(of: Field<T>, help: Help, otherwise: string) {
  const { validate: problem } = list<T, Help>([], of, help)
  return field<readonly T[] | undefined, Help>(undefined, help, problem, { defaultText: otherwise })
}

/** y = W x + scale · B A x beside projections (q, k, v, o, gate, up, down), as PEFT's LoraConfig names, scales and stores it. */
export const loraFields = {
  rank: required(integer(undefined, "Rows of A; 16 to 64 are usual.", { min: 1, max: mostRank })),
  alpha: number(undefined, "The pair's output is scaled by alpha / rank.", { above: 0, defaultText: "2 × rank" }),
  targetModules: names(
    'Projections that have a pair: names or ends of names of modules ("q_proj"), or a regular expression of whole names.',
    "every projection: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj",
  ),
  excludeModules: names("Projections that have none, in the same words.", "none"),
  layersToTransform: optionalList(
    integer(0, "", { min: 0 }),
    "Layers that have pairs, from 0; not with a regular expression.",
    "all",
  ),
  layersPattern: optionalList(
    string(undefined, ""),
    'Names of lists of layers that layersToTransform counts in, as regular expressions: "layers".',
    "any",
  ),
  rankPattern: byName("Other ranks, by the end of modules' names as a regular expression.", "ranks", isRank),
  alphaPattern: byName("Other alphas, likewise.", "numbers above 0", isAlpha),
  useRslora: boolean(false, "Scale by alpha / √rank in the place of alpha / rank."),
  modulesToSave: optionalList(
    string(undefined, ""),
    'Modules that are trained whole beside the pairs, in copies: "embed_tokens", "lm_head", norms.',
    "none",
  ),
  ensureWeightTying: boolean(
    false,
    "Where the model ties embedding and head and modulesToSave names one of them: train one copy for both, and not the one without " +
      "the other.",
  ),
  seed: integer(0, "Seeds A's first values where the model is opened from files.", { min: 0 }),
}

/** Tokens and positions are counted in 32 bits. */
const mostTokens = 2 ** 31 - 1

export const nativePolicyFields = {
  device: oneOf(
    "auto",
    ["auto", "cpu", "cuda"],
    '"auto" takes the first NVIDIA GPU that can be used, else the CPU. "cuda" without one fails with the reason.',
  ),
  precision: oneOf(
    undefined,
    ["float32", "bfloat16"],
    "Numbers that are computed with; what is trained is kept in float32 beside them, and sums are float32.",
    { defaultText: '"bfloat16" on a GPU and "float32" on the CPU' },
  ),
  threads: integer(undefined, "Threads that compute.", { min: 1, defaultText: "every core that the process may use" }),
  maxPositions: integer(undefined, "Longest sequence, prompt and reply together.", {
    min: leastPositions,
    max: mostTokens,
    defaultText: "the model's own limit",
  }),
  microBatchTokens: integer(
    undefined,
    "Tokens trained at once; more takes more memory, and gradients are added up in another order.",
    {
      min: 1,
      max: mostTokens,
      defaultText: "2048, on a GPU 16384",
    },
  ),
  longestRow: integer(
    undefined,
    "Tokens of the longest row that will be trained; one longer than microBatchTokens is trained alone, and this counts the " +
      "memory that it takes.",
    {
      min: 1,
      max: mostTokens,
      defaultText: "as long as there is room for beside what is planned (`plan.longestRow`)",
    },
  ),
  kvCacheBytes: integer(undefined, "Memory for keys and values while sampling, in bytes.", {
    min: 1,
    defaultText:
      "what 256 sequences of 4096 tokens take, or what is left; on the CPU 64 sequences, or half of what is left",
  }),
  recompute: oneOf(
    "auto",
    ["auto", "none", "norms", "mlp", "block"],
    "What the backward pass computes again instead of keeping it: nothing, the inputs of the multiplications, also the inside " +
      "of the feed-forward network, or the whole layer. Each saves memory and costs time, up to a third of training; the " +
      'results are the same. "auto" takes the least that fits.',
  ),
  moments: oneOf(
    "float32",
    ["float32", "bfloat16"],
    "How AdamW's moments are kept; bfloat16 halves their memory and rounds them.",
  ),
  sharePrefixes: boolean(
    true,
    "What rows of one batch have in common at their beginning (prompts, conversations) is computed once in training. False computes " +
      "each row by itself: a token's log-probability then has the same bits whatever rows stand beside it.",
  ),
  lora: optionalGroup(
    loraFields,
    "Train a low-rank adapter (LoRA) and leave the model as it is.",
    "all weights are trained",
  ),
  sampleWithCublas: boolean(
    false,
    "Whether NVIDIA's matrix library, which trains where a GPU's machine has it, computes what is sampled too. It may be faster at " +
      "hundreds of sequences, but adds up by the size of the batch: tokens may then depend on what is sampled beside them.",
  ),
  training: boolean(
    true,
    "False for a policy that only samples: no memory for training is asked for, in bfloat16 nothing is kept in float32 beside, and " +
      "it cannot be trained.",
  ),
  reference: boolean(
    false,
    "Whether a frozen copy will be needed (`reference.freeze`), so that its memory is counted.",
  ),
  critic: boolean(false, "Whether a critic will be trained (`critic()`), so that its memory is counted."),
}

/** What `NativePolicy.open` and `create` take beside. */
const openFields = {
  ...nativePolicyFields,
  base: string(undefined, "The adapter's model, where it is no longer at the place that the adapter names."),
  deviation: number(undefined, "Standard deviation of the initial weights.", { above: 0, defaultText: "0.02" }),
}

/** Options of `NativePolicy`. */
export type NativePolicyOptions = OptionsOf<typeof nativePolicyFields>
/** Options of a LoRA adapter, as PEFT's LoraConfig names them. */
export type LoraOptions = OptionsOf<typeof loraFields>

/** Memory in bytes that a policy takes, part by part, and in words (`text`). */
export type MemoryPlan = NativeMemoryPlan

/**
 * What a policy of this model and these options would take, without allocating it. Where `options.device` is "cuda" no GPU need
 * be there.
 *
 * @param availableBytes - memory of the device. Default: as much as is asked for.
 * @throws GigpoError `OUT_OF_MEMORY` with settings that would fit, where more than `availableBytes` are needed.
 */
export function memoryPlan(
  config: ModelConfig,
  options: NativePolicyOptions = {},
  availableBytes: number = Number.MAX_SAFE_INTEGER,
): MemoryPlan {
  checkModelConfig(config)
  const resolved = resolvePolicyOptions(options, config)
  const positions = { ...config, maxPositions: options.maxPositions ?? config.maxPositions }
  return native().memoryPlan(positions, resolved, Math.floor(availableBytes))
}

/** Memory that the device which the options choose has for a policy; undefined for a GPU that is not there. */
export function deviceMemory(options: NativePolicyOptions): number | undefined {
  const { cpu, devices } = native().deviceReport()
  return chooseDevice(options) === "cpu" ? cpu.memoryBytes : devices[0]?.memoryBytes
}

export function chooseDevice({ device = nativePolicyFields.device.default }: NativePolicyOptions): "cpu" | "cuda" {
  if (device !== "auto") return device
  return native().deviceReport().devices.length > 0 ? "cuda" : "cpu"
}

/** Options as the engine takes them beside a model. Throws `BAD_ARGUMENT` for what is unknown or has no meaning. */
export function resolvePolicyOptions(given: NativePolicyOptions, model: ModelConfig): NativeEngineOptions {
  const resolved = resolveWithoutAdapter(given)
  const adapter = given.lora && layoutOf(given.lora, model)
  return { ...resolved, ...(adapter && { adapter }) }
}

/** The same before the model is known. */
export function resolveWithoutAdapter(given: NativePolicyOptions): Omit<NativeEngineOptions, "adapter"> {
  const options = readOptions("policy", given, openFields)
  const device = chooseDevice(options)
  return {
    device,
    precision: options.precision ?? (device === "cuda" ? "bfloat16" : "float32"),
    threads: options.threads ?? native().deviceReport().cpu.threads,
    microBatchTokens: options.microBatchTokens ?? (device === "cuda" ? 16384 : 2048),
    longestRow: options.longestRow ?? 0,
    kvCacheBytes: options.kvCacheBytes ?? 0,
    recompute: options.recompute,
    moments: options.moments,
    sharePrefixes: options.sharePrefixes,
    sampleWithCublas: options.sampleWithCublas,
    trained: options.training,
    reference: options.reference,
    critic: options.critic,
  }
}

/** The adapter that options ask for. What is as PEFT's adapters are without a word is left out. */
export function adapterConfig({ rank, alpha = 2 * rank, seed: _, ...rest }: LoraOptions): AdapterConfig {
  const { targetModules } = rest
  const isAll =
    typeof targetModules === "string"
      ? targetModules.toLowerCase() === "all-linear"
      : targetModules?.length === projections.length && projections.every((name) => targetModules.includes(name))
  const said = Object.entries({ ...rest, ...(isAll && { targetModules: undefined }) }).filter(([, value]) => {
    return value !== undefined && value !== false && !(typeof value === "object" && Object.keys(value).length === 0)
  })
  return { rank, alpha, ...Object.fromEntries(said) }
}

/** The pairs and copies that options ask for beside a model. */
function layoutOf(lora: LoraOptions, model: ModelConfig): AdapterLayout {
  const fail = (what: string) => new GigpoError("BAD_ARGUMENT", `lora: ${what}.`)
  const config = adapterConfig(lora)
  if (typeof config.targetModules === "string" && config.layersToTransform)
    throw fail("layersToTransform cannot be used where targetModules is a regular expression")
  if (config.layersPattern && !config.layersToTransform) throw fail("layersPattern needs layersToTransform")
  const missing = config.layersToTransform?.find((layer) => layer >= model.layers)
  if (missing !== undefined)
    throw fail(`layersToTransform holds ${missing}, but the model's layers end at ${model.layers - 1}`)
  const [unmatched] = unmatchedNames(model, config, "language")
  if (unmatched !== undefined)
    throw fail(`no module of the model has the name "${unmatched}"; give ${projections.join(", ")}`)
  return adapterLayout(model, config, "language", fail)
}

/** Refuses a GPU that cannot be used, with the reason. */
export function checkDevice(
  device: "cpu" | "cuda",
  report: () => NativeDeviceReport = () => native().deviceReport(),
): void {
  if (device === "cpu") return
  const { unavailable, devices } = report()
  if (devices.length > 0) return
  const reason = unavailable?.message ?? "No CUDA device was found."
  throw new GigpoError("DEVICE_UNAVAILABLE", `${reason} Use device "cpu".`)
}
