import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { io, isSystemError, isThere } from "../files/io-error.ts"
import { readLinked } from "../files/regular-file.ts"
import { hubNameOf, parseHubName } from "../hub/names.ts"
import type { NativeParameter } from "../native/native.ts"
import { GigpoError } from "../util/errors.ts"
import { type AdapterConfig, adapterConfigJson, parseAdapterConfig } from "./adapter-config.ts"
import { checkAdapterKeys } from "./adapter-keys.ts"
import { type AdapterLayout, adapterLayout, isSameLayout, projectionNames, unmatchedNames } from "./adapter-layout.ts"
import { type ConfigJson, configFields, describe, largestConfig } from "./config-fields.ts"
import { warnOnce } from "./known-keys.ts"
import type { Head, ModelConfig } from "./model-config.ts"
import { openSafetensors, type TensorFiles } from "./safetensors.ts"
import { type TensorSource, writeSafetensors } from "./safetensors-writer.ts"
import { quote } from "./strict-json.ts"
import { isSameTensor } from "./tied-head.ts"

// An adapter's folder as PEFT writes it: adapter_config.json and adapter_model.safetensors.

const files = { config: "adapter_config.json", weights: "adapter_model.safetensors" } as const
/** The names of the two. */
export const adapterFiles: readonly string[] = Object.values(files)
/** In the safetensors header: SHA-256 of the weights that the adapter was trained beside. PEFT ignores it. */
const baseKey = "gigpo.base"
/** And the folder that they were in. */
const placeKey = "gigpo.place"
/** PEFT stores a tied head once more. */
export const tiedEmbedding = "base_model.model.model.embed_tokens.weight"
/** The same tensor under its second name. */
export const tiedHead = "base_model.model.lm_head.weight"

/** What an adapter stands beside. */
export interface AdapterBase {
  /** The model's folder; absent where it was never in files. */
  readonly directory?: string
  /** SHA-256 of its weights; absent where it is not known. */
  readonly sha256?: string
}

/** What adapter_config.json says. */
export interface StoredAdapter {
  readonly config: AdapterConfig
  /** `base_model_name_or_path`. */
  readonly base: string | undefined
  /** Dropout in training, which is not done here. */
  readonly dropout: number
  /** Whether biases are trained, where the model has any. */
  readonly bias: boolean
  /** All keys, to be kept when it is saved again. */
  readonly json: ConfigJson
}

/** What is written of an adapter beside its weights. */
export interface AdapterDescription {
  readonly config: AdapterConfig
  readonly head: Head
  readonly base: AdapterBase
  /** The adapter_config.json that it came with. */
  readonly original?: ConfigJson | undefined
}

/** Writes the folder's two files; the folder must be there. */
export async function writeAdapter(
  directory: string,
  { config, head, base, original }: AdapterDescription,
  tensors: readonly TensorSource[],
): Promise<void> {
  // The name, not the folder of a cache, which another machine does not have.
  const { repository, revision } = parseHubName((base.directory && hubNameOf(base.directory)) ?? "") ?? {}
  const json = {
    peft_type: "LORA",
    base_model_name_or_path: repository ?? base.directory ?? null,
    revision: revision ?? null,
    lora_dropout: 0,
    bias: "none",
    fan_in_fan_out: false,
    init_lora_weights: true,
    use_dora: false,
    ...adapterConfigJson(config, head),
    ...original, // the same in its own words
    inference_mode: true,
  }
  const path = join(directory, files.config)
  await io("write", path, writeFile(path, `${JSON.stringify(json, null, 2)}\n`))
  const metadata = {
    format: "pt",
    ...(base.sha256 !== undefined && { [baseKey]: base.sha256 }),
    ...(base.directory !== undefined && { [placeKey]: base.directory }),
  }
  await writeSafetensors(join(directory, files.weights), tensors, metadata)
}

/**
 * Whether the folder holds an adapter and no model; trainers write a config.json beside some adapters.
 *
 * @throws GigpoError `BAD_MODEL` where it holds the weights of both
 */
export async function isAdapterFolder(directory: string): Promise<boolean> {
  const there = (name: string) => isThere(join(directory, name))
  if (!(await there(files.config))) return false
  for (const weights of ["model.safetensors", "model.safetensors.index.json"]) {
    if (!(await there(weights))) continue
    throw new GigpoError(
      "BAD_MODEL",
      `${directory} holds a model (${weights}) and an adapter (${files.config}). Move one of them into a folder of its own, and ` +
        "give the adapter's folder to use both.",
    )
  }
  return true
}

/**
 * Refuses an adapter's folder where only a model's is of use: a server of the Tinker API makes its own adapters.
 *
 * @throws GigpoError `BAD_MODEL`
 */
export async function refuseAdapter(directory: string): Promise<void> {
  if (!(await isAdapterFolder(directory))) return
  throw new GigpoError(
    "BAD_MODEL",
    `${directory} is an adapter, and a server of the Tinker API can hold none but its own. Give the folder of its model, or merge ` +
      "it into that first: NativePolicy.open(folder), then save(other).",
  )
}

/** Says what is there in place of the weights. */
async function checkWeightsFile(directory: string): Promise<void> {
  const there = (name: string) => isThere(join(directory, name))
  if (await there(files.weights)) return
  const pickle = "adapter_model.bin"
  if (await there(pickle))
    throw new GigpoError(
      "BAD_MODEL",
      `${directory} has ${pickle} but no ${files.weights}. Pickle files can run code when read, so they are never read here: ` +
        "convert it with Python, PeftModel.from_pretrained(model, folder).save_pretrained(folder, safe_serialization=True).",
    )
  throw new GigpoError(
    "BAD_MODEL",
    `${directory} has ${files.config} but no ${files.weights}. Give the whole folder of the adapter, as PEFT writes it.`,
  )
}

/**
 * Reads adapter_config.json. Whatever would change what the adapter computes, and is not done here, is refused.
 *
 * @throws GigpoError `BAD_MODEL`
 */
export async function readAdapterConfig(directory: string, head: Head = "language"): Promise<StoredAdapter> {
  const path = join(directory, files.config)
  const fields = configFields(await readJson(path), path)
  const { json, fail } = fields
  if (json.peft_type !== "LORA") throw fail(`peft_type is ${describe(json.peft_type)}; only "LORA" is supported`)
  const task = head === "value" ? "SEQ_CLS" : "CAUSAL_LM"
  if ((json.task_type ?? task) !== task)
    throw fail(`task_type is ${describe(json.task_type)}; it must be "${task}" here`)
  const refuse = (what: string, fix: string) => new GigpoError("BAD_MODEL", `${path}: ${what}. Instead, ${fix}.`)
  checkAdapterKeys({ json, refuse }, path)
  const bias = json.bias ?? "none"
  if (!["none", "all", "lora_only"].includes(bias as string)) throw fail(`bias is ${describe(bias)}`)
  const base = json.base_model_name_or_path ?? undefined
  if (base !== undefined && typeof base !== "string") throw fail("base_model_name_or_path is not a text")
  const dropout = json.lora_dropout ?? 0
  if (typeof dropout !== "number") throw fail(`lora_dropout is ${describe(dropout)}`)
  return { config: parseAdapterConfig(fields), base, dropout, bias: bias !== "none", json }
}

/** The folder of the model that an adapter of this package was trained beside, where its weights name it. */
export async function placeOfBase(directory: string): Promise<string | undefined> {
  await checkWeightsFile(directory)
  const opened = await openSafetensors(directory, files.weights)
  try {
    return opened.metadata.get(placeKey)
  } finally {
    await opened.close()
  }
}

/**
 * The pairs and copies that a stored adapter has beside a model.
 *
 * @throws GigpoError `BAD_MODEL`
 */
export function layoutOfStored(
  directory: string,
  stored: StoredAdapter,
  model: ModelConfig,
  head: Head,
): AdapterLayout {
  const path = join(directory, files.config)
  const fail = (what: string) =>
    new GigpoError("BAD_MODEL", `${path}: ${what}. Correct it or give the model it was made for.`)
  if (stored.bias && model.queryKeyValueBias)
    throw fail(
      'bias is not "none", and biases are not trained beside pairs here: merge the adapter into its model with PEFT ' +
        "(merge_and_unload, save_pretrained) and open that model",
    )
  const layout = adapterLayout(model, stored.config, head, fail)
  const unmatched = unmatchedNames(model, stored.config, head)
  if (unmatched.length > 0)
    warnOnce(`${path}: no module of the model has the name ${unmatched.map(quote).join(", ")}, so it has no effect.`)
  return layout
}

async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readLinked(path, largestConfig))
  } catch (cause) {
    if (GigpoError.is(cause)) throw cause
    const what = isSystemError(cause) && cause.code === "ENOENT" ? "is missing" : "is not JSON that can be read"
    throw new GigpoError("BAD_MODEL", `${path} ${what}. Give the folder of a LoRA adapter, as PEFT writes it.`, {
      cause,
    })
  }
}

/** What an adapter is to be opened into. */
export interface AdapterPlace {
  readonly model: ModelConfig
  readonly head: Head
  readonly config: AdapterConfig
  readonly layout: AdapterLayout
  readonly base: AdapterBase
}

/**
 * Opens an adapter's weights, checked against what the policy has: pairs, names, shapes and the model they were trained beside.
 *
 * @throws GigpoError `BAD_MODEL`
 */
export async function openAdapter(
  directory: string,
  own: AdapterPlace,
  parameters: readonly NativeParameter[],
): Promise<{ readonly files: TensorFiles; readonly stored: StoredAdapter }> {
  const stored = await readAdapterConfig(directory, own.head)
  const layout = layoutOfStored(directory, stored, own.model, own.head)
  const other = differenceOf(stored.config, layout, own)
  if (other !== undefined) throw misfit(directory, `${other}: open the policy with the adapter's`)
  await checkWeightsFile(directory)
  const opened = await openSafetensors(directory, files.weights)
  try {
    await checkAdapterTensors(directory, opened, parameters, layout)
    const wanted = opened.metadata.get(baseKey)
    const { base } = own
    if (wanted !== undefined && base.sha256 !== undefined && wanted !== base.sha256) {
      const beside = `was trained beside another model than ${base.directory ?? "this one"}`
      throw misfit(
        directory,
        `${beside} (the SHA-256 of the weights differs): give the model that it was trained beside`,
      )
    }
    return { files: opened, stored }
  } catch (error) {
    await opened.close()
    throw error
  }
}

function differenceOf(found: AdapterConfig, layout: AdapterLayout, own: AdapterPlace): string | undefined {
  if (isSameLayout(layout, own.layout)) return undefined
  const [one, other] = [found, own.config].map(({ rank, alpha }) => `rank ${rank} and alpha ${alpha}`)
  if (one !== other) return `has ${one}, but the policy's has ${other}`
  const index = layout.ranks.findIndex((rank, i) => rank !== own.layout.ranks[i])
  const name = projectionNames(own.model)[index]
  if (name !== undefined)
    return `has rank ${layout.ranks[index]} at ${name}, but the policy's has ${own.layout.ranks[index]} there`
  return "has other alphas or other modules_to_save than the policy's"
}

async function checkAdapterTensors(
  directory: string,
  found: TensorFiles,
  parameters: readonly NativeParameter[],
  layout: AdapterLayout,
): Promise<void> {
  const wanted = new Map(parameters.map(({ name, shape }) => [name, shape]))
  const twice = layout.tied && found.names.includes(tiedHead)
  const isKnown = (name: string) => wanted.has(name) || (twice && name === tiedHead)
  checkNames(directory, found.names, isKnown)
  const missing = [...wanted.keys()].find((name) => !found.names.includes(name))
  if (missing !== undefined)
    throw misfit(directory, `lacks ${quote(missing)}, which its ${files.config} asks for: give the whole adapter`)
  const unknown = found.names.find((name) => !isKnown(name))
  if (unknown !== undefined) throw misfit(directory, `holds ${quote(unknown)}, ${reasonOf(unknown)}`)
  for (const [name, shape] of wanted) {
    const stored = found.info(name).shape
    if (stored.join() === shape.join()) continue
    const sizes = `[${stored.slice(0, 8).join(", ")}] instead of [${shape.join(", ")}]`
    throw misfit(directory, `has ${quote(name)} of shape ${sizes}: give the model it was made for`)
  }
  if (twice && !(await isSameTensor(found, tiedEmbedding, tiedHead)))
    throw misfit(
      directory,
      `ties ${quote(tiedHead)} to the embedding (ensure_weight_tying), but holds another one: save it again`,
    )
}

/** Why a tensor has no place. */
function reasonOf(name: string): string {
  if (/\.lora_B\.bias$/.test(name)) return "a bias of a pair (lora_bias), which is not supported"
  if (/\.lora_embedding_[AB]/.test(name)) return "a pair beside the embedding, which is not supported"
  if (name.includes(".lora_"))
    return `for which ${files.config} has no place: its target_modules, layers_to_transform or the model are others`
  if (/\.bias$/.test(name)) return "a bias that was trained, which is not supported beside pairs"
  return (
    `which PEFT would put in the place of the model's own: name its module in modules_to_save of ${files.config}, or merge the ` +
    "adapter into its model with PEFT (merge_and_unload, save_pretrained)"
  )
}

/** Refuses names of other layouts than that of PEFT's files, with what they are and how to write them anew. */
function checkNames(directory: string, names: readonly string[], isKnown: (name: string) => boolean): void {
  const unknown = names.filter((name) => !isKnown(name))
  const [first] = unknown
  if (first === undefined) return
  const say = (what: string) => misfit(directory, `${what} (${quote(first)}${unknown.length > 1 ? ", …" : ""})`)
  const anew = "save it with PeftModel.save_pretrained"
  const named = /\.lora_(?:A|B|embedding_A|embedding_B|magnitude_vector)\.([^.]+)(?:\.weight)?$/.exec(first)?.[1]
  if (named !== undefined && named !== "weight" && named !== "bias")
    throw say(
      `has names of a state_dict, with the adapter's name "${named}" in them: ${anew}, or take "${named}." out of them`,
    )
  const bare = unknown.find((name) => isKnown(`base_model.model.${name}`))
  if (bare !== undefined)
    throw say(`has names without PEFT's prefix "base_model.model.": ${anew}, or put it before them`)
  if (unknown.some((name) => name.includes("lora_magnitude_vector")))
    throw say(
      "holds magnitudes, so it is DoRA, which is not supported: merge it into its model with PEFT (merge_and_unload)",
    )
}

function misfit(directory: string, what: string): GigpoError {
  return new GigpoError("BAD_MODEL", `The adapter in ${directory} ${what}.`)
}
