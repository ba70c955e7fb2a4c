import { type AdapterConfig, projections } from "../../model-files/adapter-config.ts"
import { type AdapterLayout, adapterLayout, unmatchedNames } from "../../model-files/adapter-layout.ts"
import type { ModelConfig } from "../../model-files/model-config.ts"
import { type NativeEngineOptions, type NativeMemoryPlan, native } from "../../native/native.ts"
import { boolean, field, integer, list, number, oneOf, optionalGroup, required, string } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionField, OptionsOf } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import { leastPositions } from "../check-arguments.ts"
import { checkModelConfig } from "../check-model.ts"
import { type DeviceName, devicePattern, deviceProblem, gpusOf, kindOf } from "./devices.ts"

type Names = readonly string[] | string | undefined

/** Option: names of modules, or a regular expression. */
function names<const Help extends string>(help: Help, otherwise: string) {
  const problem = (value: unknown) =>
    isText(value) || (Array.isArray(value) && value.length > 0 && value.every(isText))
      ? undefined
      : "must be a list of names, or a regular expression"
  return field<Names, Help>(undefined, help, problem, { defaultText: otherwise })
}

/** Option: numbers by module names. */
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

/** Optional list. */
function optionalList<T, const Help extends string>(of: OptionField<T>, help: Help, otherwise: string) {
  const { validate: problem } = list<T, Help>([], of, help)
  return field<readonly T[] | undefined, Help>(undefined, help, problem, { defaultText: otherwise })
}

/**
 * LoRA options: y = W x + scale · B A x for projections (q, k, v, o, gate, up, down), with the names, scaling and
 * layout of PEFT's LoraConfig.
 */
export const loraFields = {
  rank: required(integer(undefined, "Rank of the adapter; usually 16 to 64.", { min: 1, max: mostRank })),
  alpha: number(undefined, "Scaling of the adapter's output, which is multiplied by alpha / rank.", {
    above: 0,
    defaultText: "2 × rank",
  }),
  targetModules: names(
    'Projections with an adapter: module names or their ends ("q_proj"), or a regular expression for full names.',
    "every projection: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj",
  ),
  excludeModules: names("Projections without an adapter, in the same form.", "none"),
  layersToTransform: optionalList(
    integer(0, "", { min: 0 }),
    "Layers with an adapter, from 0; not with a regular expression.",
    "all",
  ),
  layersPattern: optionalList(
    string(undefined, ""),
    'Names of the layer lists that layersToTransform indexes, as regular expressions: "layers".',
    "any",
  ),
  rankPattern: byName(
    "Ranks of individual modules, by regular expressions for the ends of their names.",
    "ranks",
    isRank,
  ),
  alphaPattern: byName("Alphas of individual modules, in the same form.", "numbers above 0", isAlpha),
  useRslora: boolean(false, "Scale by alpha / √rank instead of alpha / rank."),
  modulesToSave: optionalList(
    string(undefined, ""),
    'Modules that are fully trained, as copies: "embed_tokens", "lm_head", norms.',
    "none",
  ),
  ensureWeightTying: boolean(
    false,
    "If the model ties embedding and output head and modulesToSave names one of them: train one shared copy instead of only " +
      "the named one.",
  ),
  seed: integer(0, "Seed of the adapter's initial values when a model is opened from files.", { min: 0 }),
}

/** Maximum tokens and positions: both are 32-bit integers. */
const mostTokens = 2 ** 31 - 1

export const nativePolicyFields = {
  device: field<DeviceName, string>(
    "auto",
    '"auto" (the first usable NVIDIA GPU, else the CPU), "cpu", "cuda", "cuda:1" (by CUDA\'s number), or several GPUs of one kind ' +
      '("cuda:0,1", "all"). Each of several has the whole model, and samples and trains a part of the sequences. Where no GPU is ' +
      "usable, opening fails with the reason.",
    deviceProblem,
    { schema: { type: "string", pattern: devicePattern } },
  ),
  precision: oneOf(
    undefined,
    ["float32", "bfloat16"],
    "Number format of the computation. Trained weights are also kept in float32, and sums are float32.",
    { defaultText: '"bfloat16" on a GPU and "float32" on the CPU' },
  ),
  threads: integer(undefined, "Number of CPU threads.", { min: 1, defaultText: "all cores available to the process" }),
  maxPositions: integer(undefined, "Maximum tokens of a sequence (prompt and completion).", {
    min: leastPositions,
    max: mostTokens,
    defaultText: "the model's own limit",
  }),
  microBatchTokens: integer(
    undefined,
    "Tokens per micro-batch in training. A larger value needs more memory and changes the order of gradient sums.",
    {
      min: 1,
      max: mostTokens,
      defaultText: "2048, on a GPU 16384",
    },
  ),
  maxTrainTokens: integer(
    undefined,
    "Maximum tokens of a training sequence. A sequence longer than microBatchTokens is trained alone; this option reserves the " +
      "memory for it.",
    {
      min: 1,
      max: mostTokens,
      defaultText: "as many as fit in the remaining memory (`memoryPlan.maxTrainTokens`)",
    },
  ),
  kvCacheBytes: integer(undefined, "Size of the KV cache in bytes.", {
    min: 1,
    defaultText:
      "enough for 256 sequences of 4096 tokens, or the remaining memory; on the CPU 64 sequences, or half of the remaining memory",
  }),
  recompute: oneOf(
    "auto",
    ["auto", "none", "norms", "mlp", "block"],
    "Gradient checkpointing: activations that the backward pass computes again. none: no activations; norms: normalized inputs and the input " +
      "of the down projection; mlp: also gate and up projection; block: all but the input of each layer. Each saves memory and costs time, " +
      'up to a third of training; the results are the same. "auto" recomputes the least that fits in memory.',
  ),
  optimizerPrecision: oneOf(
    "float32",
    ["float32", "bfloat16"],
    "Number format of AdamW's moments; bfloat16 halves their memory and rounds them.",
  ),
  sharePrefixes: boolean(
    true,
    "Prefix sharing in training: equal beginnings of sequences in a batch (prompts, conversations) are computed once. False computes " +
      "each sequence separately, so that log-probabilities do not depend on the other sequences of the batch, bit by bit.",
  ),
  lora: optionalGroup(
    loraFields,
    "Train a LoRA adapter instead of the model's own weights.",
    "all weights are trained",
  ),
  sampleWithCublas: boolean(
    false,
    "Whether to use cuBLASLt for sampling, too (training uses it if installed). It may be faster at " +
      "hundreds of sequences, but its sums depend on the batch size: tokens may then depend on concurrent requests.",
  ),
  training: boolean(
    true,
    "False for a policy that only samples: no memory is reserved for training, no float32 copy of bfloat16 weights is kept, and " +
      "the policy cannot be trained.",
  ),
  reference: boolean(false, "Whether to reserve memory for a frozen reference policy (`reference.freeze`)."),
  critic: boolean(false, "Whether to reserve memory for a critic (`critic()`)."),
  trainVision: boolean(
    false,
    "Whether to train the vision tower of a vision-language model, too; not with lora. A frozen tower computes the features of an image once.",
  ),
}

/** Further options of `NativePolicy.open` and `create`. */
const openFields = {
  ...nativePolicyFields,
  base: string(
    undefined,
    "Folder of the adapter's base model, if it is no longer at the place that the adapter names.",
  ),
  deviation: number(undefined, "Standard deviation of the initial weights.", { above: 0, defaultText: "0.02" }),
}

/** Options of `NativePolicy`. */
export type NativePolicyOptions = OptionsOf<typeof nativePolicyFields>
/** Options of a LoRA adapter, as PEFT's LoraConfig names them. */
export type LoraOptions = OptionsOf<typeof loraFields>

/** Memory plan of a policy, in bytes by part, and as text (`text`). */
export type MemoryPlan = NativeMemoryPlan

/**
 * Returns the memory that a policy with this model and these options would take, without allocating it. If
 * `options.device` is "cuda", no GPU needs to be present.
 *
 * @param availableBytes - memory of the device. Default: unlimited.
 * @throws GigpoError `OUT_OF_MEMORY` with settings that would fit, if more than `availableBytes` are needed.
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

/** Memory available on the selected device, of several on the smallest; undefined without a GPU. */
export function deviceMemory(options: NativePolicyOptions): number | undefined {
  const { cpu, devices } = native().deviceReport()
  if (chooseDevice(options) === "cpu") return cpu.memoryBytes
  const gpus = chooseGpus(options)
  const chosen = gpus.length === 0 ? devices.slice(0, 1) : devices.filter(({ index }) => gpus.includes(index))
  return chosen.length === 0 ? undefined : Math.min(...chosen.map(({ memoryBytes }) => memoryBytes))
}

/** Kind of the selected device. */
export function chooseDevice({ device = nativePolicyFields.device.default }: NativePolicyOptions): "cpu" | "cuda" {
  return kindOf(device, () => native().deviceReport())
}

/** Numbers of the selected GPUs; empty for the CPU, and for the first usable GPU. */
export function chooseGpus({ device = nativePolicyFields.device.default }: NativePolicyOptions): number[] {
  return gpusOf(device, () => native().deviceReport())
}

/** Options in the form of the engine, for a model. Throws `BAD_ARGUMENT` for unknown or invalid options. */
export function resolvePolicyOptions(given: NativePolicyOptions, model: ModelConfig): NativeEngineOptions {
  const resolved = resolveWithoutAdapter(given)
  if (given.trainVision && !model.vision)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `trainVision is true, but a ${model.architecture} model has no vision tower: leave the option out.`,
    )
  if (given.trainVision && given.lora)
    throw new GigpoError(
      "BAD_ARGUMENT",
      "trainVision cannot be combined with lora: an adapter trains the language model alone. Leave one of the two out.",
    )
  const adapter = given.lora && layoutOf(given.lora, model)
  return { ...resolved, ...(adapter && { adapter }) }
}

/** Options in the form of the engine, before the model is known. */
export function resolveWithoutAdapter(given: NativePolicyOptions): Omit<NativeEngineOptions, "adapter"> {
  const options = readOptions("policy", given, openFields)
  const device = chooseDevice(options)
  return {
    device,
    precision: options.precision ?? (device === "cuda" ? "bfloat16" : "float32"),
    threads: options.threads ?? native().deviceReport().cpu.threads,
    microBatchTokens: options.microBatchTokens ?? (device === "cuda" ? 16384 : 2048),
    maxTrainTokens: options.maxTrainTokens ?? 0,
    kvCacheBytes: options.kvCacheBytes ?? 0,
    recompute: options.recompute,
    optimizerPrecision: options.optimizerPrecision,
    sharePrefixes: options.sharePrefixes,
    sampleWithCublas: options.sampleWithCublas,
    trained: options.training,
    reference: options.reference,
    critic: options.critic,
    trainVision: options.trainVision,
  }
}

/** Adapter configuration of the options, without values that are PEFT's defaults. */
export function adapterConfig({ rank, alpha = 2 * rank, seed: _, ...rest }: LoraOptions): AdapterConfig {
  const { targetModules } = rest
  const isAll =
    typeof targetModules === "string"
      ? targetModules.toLowerCase() === "all-linear"
      : targetModules?.length === projections.length && projections.every((name) => targetModules.includes(name))
  const stated = Object.entries({ ...rest, ...(isAll && { targetModules: undefined }) }).filter(([, value]) => {
    return value !== undefined && value !== false && !(typeof value === "object" && Object.keys(value).length === 0)
  })
  return { rank, alpha, ...Object.fromEntries(stated) }
}

/** Layout of the adapter for a model. */
function layoutOf(lora: LoraOptions, model: ModelConfig): AdapterLayout {
  const fail = (what: string) => new GigpoError("BAD_ARGUMENT", `lora: ${what}.`)
  const config = adapterConfig(lora)
  if (typeof config.targetModules === "string" && config.layersToTransform)
    throw fail("layersToTransform cannot be combined with a regular expression as targetModules")
  if (config.layersPattern && !config.layersToTransform) throw fail("layersPattern needs layersToTransform")
  const missing = config.layersToTransform?.find((layer) => layer >= model.layers)
  if (missing !== undefined)
    throw fail(`layersToTransform contains ${missing}, but the last layer of the model is ${model.layers - 1}`)
  const [unmatched] = unmatchedNames(model, config, "language")
  if (unmatched !== undefined) throw fail(`the model has no module "${unmatched}"; use ${projections.join(", ")}`)
  return adapterLayout(model, config, "language", fail)
}
