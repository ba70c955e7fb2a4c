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
import { storedAdapterName, towerModules } from "./vision/names.ts"

// The folder of an adapter in PEFT's layout: adapter_config.json and adapter_model.safetensors.

const files = { config: "adapter_config.json", weights: "adapter_model.safetensors" } as const
/** Names of the two files of an adapter. */
export const adapterFiles: readonly string[] = Object.values(files)
/** Key in the safetensors header: SHA-256 of the base model's weights. PEFT ignores it. */
const baseKey = "gigpo.base"
/** Key in the safetensors header: folder of the base model. */
const placeKey = "gigpo.place"
/** Name of the trained copy of the embedding. PEFT stores a tied head as a second tensor, `tiedHead`. */
export const tiedEmbedding = "base_model.model.model.embed_tokens.weight"
/** Name under which PEFT stores a tied head. */
export const tiedHead = "base_model.model.lm_head.weight"

/** Base model of an adapter. */
export interface AdapterBase {
  /** Folder of the model; absent for a model that was never in files. */
  readonly directory?: string
  /** SHA-256 of the weights; absent if unknown. */
  readonly sha256?: string
}

/** Contents of adapter_config.json. */
export interface StoredAdapter {
  readonly config: AdapterConfig
  /** Base model: `base_model_name_or_path`. */
  readonly base: string | undefined
  /** Dropout rate in training. This package applies no dropout. */
  readonly dropout: number
  /** Whether the biases of the model are trained. */
  readonly bias: boolean
  /** All fields of the file; they are kept when the adapter is saved again. */
  readonly json: ConfigJson
}

/** Contents of an adapter folder except the weights. */
export interface AdapterDescription {
  readonly config: AdapterConfig
  readonly head: Head
  readonly base: AdapterBase
  readonly model: ModelConfig
  /** Contents of the adapter_config.json that the adapter was opened with. */
  readonly original?: ConfigJson | undefined
}

/** Writes the two files of an adapter into an existing folder. */
export async function writeAdapter(
  directory: string,
  { config, head, base, model, original }: AdapterDescription,
  tensors: readonly TensorSource[],
): Promise<void> {
  // Another machine does not have the folder of the cache, so the name on the Hub is written.
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
    ...withoutTower(config, model),
    ...original, // same meaning; keeps the spelling of the file
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

/** Field that excludes the vision tower, whose modules have names like those of the language model. A regular expression of targets may differ. */
function withoutTower({ excludeModules }: AdapterConfig, model: ModelConfig): { readonly exclude_modules?: string } {
  const tower = towerModules(model)
  if (tower === undefined) return {}
  const ends =
    typeof excludeModules === "string" ? [excludeModules] : (excludeModules ?? []).map((end) => `(?:.*\\.)?${end}`)
  return { exclude_modules: [...new Set([tower, ...ends])].join("|") }
}

/**
 * Whether a folder holds an adapter and no model. A config.json alone is not a model: some trainers write it next to an adapter.
 *
 * @throws GigpoError `BAD_MODEL` if the folder holds the weights of both
 */
export async function isAdapterFolder(directory: string): Promise<boolean> {
  const there = (name: string) => isThere(join(directory, name))
  if (!(await there(files.config))) return false
  for (const weights of ["model.safetensors", "model.safetensors.index.json"]) {
    if (!(await there(weights))) continue
    throw new GigpoError(
      "BAD_MODEL",
      `${directory} holds a model (${weights}) and an adapter (${files.config}). Move one of them into a separate folder, and ` +
        "give the adapter's folder to use both.",
    )
  }
  return true
}

/**
 * Throws for the folder of an adapter if a model is required: a server of the Tinker API creates its own adapters.
 *
 * @throws GigpoError `BAD_MODEL`
 */
export async function refuseAdapter(directory: string): Promise<void> {
  if (!(await isAdapterFolder(directory))) return
  throw new GigpoError(
    "BAD_MODEL",
    `${directory} is an adapter, but a server of the Tinker API supports only the adapters it creates. Give the folder of its base ` +
      "model, or merge the adapter into the base model first: NativePolicy.open(folder), then save(other).",
  )
}

/** Throws if the weights are missing, and names the file that is there instead. */
async function checkWeightsFile(directory: string): Promise<void> {
  const there = (name: string) => isThere(join(directory, name))
  if (await there(files.weights)) return
  const pickle = "adapter_model.bin"
  if (await there(pickle))
    throw new GigpoError(
      "BAD_MODEL",
      `${directory} has ${pickle} but no ${files.weights}. Pickle files can run code when read, so gigpo never reads them: ` +
        "convert it with Python, PeftModel.from_pretrained(model, folder).save_pretrained(folder, safe_serialization=True).",
    )
  throw new GigpoError(
    "BAD_MODEL",
    `${directory} has ${files.config} but no ${files.weights}. Give the whole folder of the adapter, as PEFT writes it.`,
  )
}

/**
 * Reads adapter_config.json. Settings that would change the computation and are not supported are rejected.
 *
 * @throws GigpoError `BAD_MODEL`
 */
export async function readAdapterConfig(directory: string, head: Head = "language"): Promise<StoredAdapter> {
  const path = join(directory, files.config)
  const fields = configFields(await readJson(path), path)
  const { json, fail } = fields
  if (json.peft_type !== "LORA") throw fail(`peft_type is ${describe(json.peft_type)}; only "LORA" is supported`)
  const task = head === "value" ? "SEQ_CLS" : "CAUSAL_LM"
  if ((json.task_type ?? task) !== task) throw fail(`task_type is ${describe(json.task_type)}; it must be "${task}"`)
  const refuse = (what: string, fix: string) => new GigpoError("BAD_MODEL", `${path}: ${what}. Instead, ${fix}.`)
  checkAdapterKeys({ json, refuse }, path)
  const bias = json.bias ?? "none"
  if (!["none", "all", "lora_only"].includes(bias as string))
    throw fail(`bias is ${describe(bias)}; it must be "none", "all" or "lora_only"`)
  const base = json.base_model_name_or_path ?? undefined
  if (base !== undefined && typeof base !== "string") throw fail("base_model_name_or_path must be a string")
  const dropout = json.lora_dropout ?? 0
  if (typeof dropout !== "number") throw fail(`lora_dropout is ${describe(dropout)}; it must be a number`)
  return { config: parseAdapterConfig(fields), base, dropout, bias: bias !== "none", json }
}

/** Returns the folder of the base model, which this package records in the weights file; undefined if none is recorded. */
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
 * Returns which modules of a model have LoRA matrices or trained copies in a stored adapter.
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
    new GigpoError("BAD_MODEL", `${path}: ${what}. Correct it or give the base model of the adapter.`)
  if (stored.bias && model.queryKeyValueBias)
    throw fail(
      'bias is not "none", and training biases is not supported: merge the adapter into its base model with PEFT ' +
        "(merge_and_unload, save_pretrained) and open that model",
    )
  const layout = adapterLayout(model, stored.config, head, fail)
  const unmatched = unmatchedNames(model, stored.config, head)
  if (unmatched.length > 0)
    warnOnce(
      `${path}: the model has no module named ${unmatched.map(quote).join(" or ")}, so the setting has no effect.`,
    )
  return layout
}

async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readLinked(path, largestConfig))
  } catch (cause) {
    if (GigpoError.is(cause)) throw cause
    const what = isSystemError(cause) && cause.code === "ENOENT" ? "is missing" : "is not valid JSON"
    throw new GigpoError("BAD_MODEL", `${path} ${what}. Give the folder of a LoRA adapter, as PEFT writes it.`, {
      cause,
    })
  }
}

/** Policy that an adapter is loaded into. */
export interface AdapterPlace {
  readonly model: ModelConfig
  readonly head: Head
  readonly config: AdapterConfig
  readonly layout: AdapterLayout
  readonly base: AdapterBase
}

/**
 * Opens the weights of an adapter. LoRA ranks, names, shapes and the base model are checked against the policy.
 *
 * @throws GigpoError `BAD_MODEL`
 */
export async function openAdapter(
  directory: string,
  own: AdapterPlace,
  parameters: readonly NativeParameter[],
): Promise<{ readonly files: TensorFiles; readonly stored: StoredAdapter }> {
  const described = await readAdapterConfig(directory, own.head)
  const layout = layoutOfStored(directory, described, own.model, own.head)
  const other = differenceOf(described.config, layout, own)
  if (other !== undefined) throw misfit(directory, `${other}: open the policy with the settings of the adapter`)
  await checkWeightsFile(directory)
  const opened = await openSafetensors(directory, files.weights)
  try {
    const stored = (name: string) => storedAdapterName(own.model, name)
    const named = parameters.map(({ name, shape }) => ({ name: stored(name), shape }))
    await checkAdapterTensors(directory, opened, named, { tied: layout.tied, embedding: stored(tiedEmbedding) })
    const wanted = opened.metadata.get(baseKey)
    const { base } = own
    if (wanted !== undefined && base.sha256 !== undefined && wanted !== base.sha256) {
      const reason = `was trained on another base model than ${base.directory ?? "this one"}`
      throw misfit(directory, `${reason} (the SHA-256 of the weights differs): give its base model`)
    }
    return { files: opened, stored: described }
  } catch (error) {
    await opened.close()
    throw error
  }
}

function differenceOf(found: AdapterConfig, layout: AdapterLayout, own: AdapterPlace): string | undefined {
  if (isSameLayout(layout, own.layout)) return undefined
  const [one, other] = [found, own.config].map(({ rank, alpha }) => `rank ${rank} and alpha ${alpha}`)
  if (one !== other) return `has ${one}, but the adapter of the policy has ${other}`
  const index = layout.ranks.findIndex((rank, i) => rank !== own.layout.ranks[i])
  const name = projectionNames(own.model)[index]
  if (name !== undefined)
    return `has rank ${layout.ranks[index]} at ${name}, but the adapter of the policy has ${own.layout.ranks[index]} there`
  return "has other alphas or other modules_to_save than the adapter of the policy"
}

async function checkAdapterTensors(
  directory: string,
  found: TensorFiles,
  parameters: readonly NativeParameter[],
  { tied, embedding }: { readonly tied: boolean; readonly embedding: string },
): Promise<void> {
  const wanted = new Map(parameters.map(({ name, shape }) => [name, shape]))
  const twice = tied && found.names.includes(tiedHead)
  const isKnown = (name: string) => wanted.has(name) || (twice && name === tiedHead)
  checkNames(directory, found.names, isKnown)
  const missing = [...wanted.keys()].find((name) => !found.names.includes(name))
  if (missing !== undefined)
    throw misfit(directory, `lacks ${quote(missing)}, which its ${files.config} requires: give the complete adapter`)
  const unknown = found.names.find((name) => !isKnown(name))
  if (unknown !== undefined) throw misfit(directory, `holds ${quote(unknown)}, ${reasonOf(unknown)}`)
  for (const [name, shape] of wanted) {
    const stored = found.info(name).shape
    if (stored.join() === shape.join()) continue
    const sizes = `[${stored.slice(0, 8).join(", ")}] instead of [${shape.join(", ")}]`
    throw misfit(directory, `has ${quote(name)} of shape ${sizes}: give its base model`)
  }
  if (twice && !(await isSameTensor(found, embedding, tiedHead)))
    throw misfit(
      directory,
      `ties ${quote(tiedHead)} to the embedding (ensure_weight_tying), but holds a head that differs from the embedding: save the adapter again`,
    )
}

/** Returns why a tensor is not supported. */
function reasonOf(name: string): string {
  if (/\.lora_B\.bias$/.test(name)) return "a bias of a LoRA matrix (lora_bias), which is not supported"
  if (/\.lora_embedding_[AB]/.test(name)) return "LoRA matrices of the embedding, which are not supported"
  if (name.includes(".lora_") && /\.(visual|vision_model|connector)\./.test(name))
    return "LoRA matrices of the vision tower, which are not supported"
  if (name.includes(".lora_"))
    return `which ${files.config} does not describe: its target_modules, its layers_to_transform or the model differ`
  if (/\.bias$/.test(name)) return "a trained bias, which is not supported"
  return (
    `which would replace weights of the base model: name its module in modules_to_save of ${files.config}, or merge the ` +
    "adapter into its base model with PEFT (merge_and_unload, save_pretrained)"
  )
}

/** Throws if tensor names follow another layout than PEFT's files. The error says which layout, and how to convert it. */
function checkNames(directory: string, names: readonly string[], isKnown: (name: string) => boolean): void {
  const unknown = names.filter((name) => !isKnown(name))
  const [first] = unknown
  if (first === undefined) return
  const say = (what: string) => misfit(directory, `${what} (${quote(first)}${unknown.length > 1 ? ", …" : ""})`)
  const fix = "save it with PeftModel.save_pretrained"
  const named = /\.lora_(?:A|B|embedding_A|embedding_B|magnitude_vector)\.([^.]+)(?:\.weight)?$/.exec(first)?.[1]
  if (named !== undefined && named !== "weight" && named !== "bias")
    throw say(
      `has names of a state_dict, with the adapter's name "${named}" in them: ${fix}, or remove "${named}." from them`,
    )
  const bare = unknown.find((name) => isKnown(`base_model.model.${name}`))
  if (bare !== undefined) throw say(`has names without PEFT's prefix "base_model.model.": ${fix}, or add the prefix`)
  if (unknown.some((name) => name.includes("lora_magnitude_vector")))
    throw say(
      "holds magnitude vectors (DoRA), which are not supported: merge it into its base model with PEFT (merge_and_unload)",
    )
}

function misfit(directory: string, what: string): GigpoError {
  return new GigpoError("BAD_MODEL", `The adapter in ${directory} ${what}.`)
}
