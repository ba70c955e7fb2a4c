import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { GigpoError } from "../errors.ts"
import { io, isSystemError, isThere } from "../files/io-error.ts"
import type { NativeParameter } from "../native.ts"
import { type ConfigFields, configFields, describe } from "./config-fields.ts"
import type { Head } from "./model-config.ts"
import { openSafetensors, type TensorFiles } from "./safetensors.ts"
import { type TensorSource, writeSafetensors } from "./safetensors-writer.ts"
import { quote } from "./strict-json.ts"

// An adapter's folder as PEFT writes it: adapter_config.json and adapter_model.safetensors.

const files = { config: "adapter_config.json", weights: "adapter_model.safetensors" } as const
/** The names of the two. */
export const adapterFiles: readonly string[] = Object.values(files)
/** In the safetensors header: SHA-256 of the weights that the adapter was trained beside. PEFT ignores it. */
const baseKey = "gigpo.base"

/** Projections that have a pair, as PEFT calls them. */
const targetModules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"] as const

/** An adapter's size. */
export interface AdapterConfig {
  readonly rank: number
  readonly alpha: number
}

/** What an adapter stands beside. */
export interface AdapterBase {
  /** The model's folder; absent where it was never in files. */
  readonly directory?: string
  /** SHA-256 of its weights; absent where it is not known. */
  readonly sha256?: string
}

export interface StoredAdapter extends AdapterConfig {
  /** What `base_model_name_or_path` says. */
  readonly base: string | undefined
}

/** Modules that are trained whole beside the pairs: a critic's head. */
const wholeModules: Readonly<Record<Head, readonly string[] | null>> = { language: null, value: ["score"] }

/** Writes the folder's two files; the folder must be there. */
export async function writeAdapter(
  directory: string,
  { rank, alpha }: AdapterConfig,
  base: AdapterBase,
  tensors: readonly TensorSource[],
  head: Head = "language",
): Promise<void> {
  const config = {
    peft_type: "LORA",
    task_type: head === "value" ? "SEQ_CLS" : "CAUSAL_LM",
    base_model_name_or_path: base.directory ?? null,
    revision: null,
    inference_mode: true,
    r: rank,
    lora_alpha: alpha,
    lora_dropout: 0,
    target_modules: targetModules,
    bias: "none",
    fan_in_fan_out: false,
    init_lora_weights: true,
    use_rslora: false,
    use_dora: false,
    rank_pattern: {},
    alpha_pattern: {},
    modules_to_save: wholeModules[head],
    layers_to_transform: null,
    layers_pattern: null,
  }
  const path = join(directory, files.config)
  await io("write", path, writeFile(path, `${JSON.stringify(config, null, 2)}\n`))
  const metadata = { format: "pt", ...(base.sha256 !== undefined && { [baseKey]: base.sha256 }) }
  await writeSafetensors(join(directory, files.weights), tensors, metadata)
}

/** Whether the folder holds an adapter alone, and no model. */
export async function isAdapterFolder(directory: string): Promise<boolean> {
  return (await isThere(join(directory, files.config))) && !(await isThere(join(directory, "config.json")))
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
  refuseUnsupported(fields, head)
  const base = json.base_model_name_or_path ?? undefined
  if (base !== undefined && typeof base !== "string") throw fail("base_model_name_or_path is not a text")
  return { rank: fields.size("r", 65536), alpha: fields.positive("lora_alpha"), base }
}

async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"))
  } catch (cause) {
    const what = isSystemError(cause) && cause.code === "ENOENT" ? "is missing" : "is not JSON that can be read"
    throw new GigpoError("BAD_MODEL", `${path} ${what}. Give the folder of a LoRA adapter, as PEFT writes it.`, {
      cause,
    })
  }
}

const unsupportedFlags = ["use_rslora", "use_dora", "use_qalora", "use_bdlora", "fan_in_fan_out", "lora_bias"]
const unsupportedParts = [
  "rank_pattern",
  "alpha_pattern",
  "modules_to_save",
  "layers_to_transform",
  "layer_replication",
  "target_parameters",
  "trainable_token_indices",
  "alora_invocation_tokens",
]

function refuseUnsupported({ json, flag, fail }: ConfigFields, head: Head): void {
  for (const key of unsupportedFlags) if (flag(key)) throw fail(`${key} is true, which is not supported`)
  if ((json.bias ?? "none") !== "none") throw fail(`bias is ${describe(json.bias)}; only "none" is supported`)
  for (const key of unsupportedParts) {
    const value = json[key] ?? {}
    const empty = typeof value === "object" && Object.keys(value).length === 0
    const own = key === "modules_to_save" && String(value) === String(wholeModules[head])
    if (!empty && !own) throw fail(`${key} is set, which is not supported`)
  }
}

/**
 * Opens an adapter's weights, checked against what the policy has: size, names, shapes and the model they were trained beside.
 *
 * @throws GigpoError `BAD_MODEL`
 */
export async function openAdapter(
  directory: string,
  own: AdapterConfig,
  parameters: readonly NativeParameter[],
  base: AdapterBase,
  head: Head = "language",
): Promise<TensorFiles> {
  const { rank, alpha } = await readAdapterConfig(directory, head)
  if (rank !== own.rank || alpha !== own.alpha) {
    const both = `rank ${rank} and alpha ${alpha}, but the policy's has rank ${own.rank} and alpha ${own.alpha}`
    throw misfit(directory, `has ${both}: open the policy with the adapter's`)
  }
  const opened = await openSafetensors(directory, files.weights)
  try {
    checkAdapterTensors(directory, opened, parameters)
    const wanted = opened.metadata.get(baseKey)
    if (wanted !== undefined && base.sha256 !== undefined && wanted !== base.sha256) {
      const beside = `was trained beside another model than ${base.directory ?? "this one"}`
      throw misfit(
        directory,
        `${beside} (the SHA-256 of the weights differs): give the model that it was trained beside`,
      )
    }
    return opened
  } catch (error) {
    await opened.close()
    throw error
  }
}

function checkAdapterTensors(directory: string, found: TensorFiles, parameters: readonly NativeParameter[]): void {
  const wanted = new Map(parameters.map(({ name, shape }) => [name, shape]))
  const missing = [...wanted.keys()].find((name) => !found.names.includes(name))
  if (missing !== undefined)
    throw misfit(directory, `lacks ${quote(missing)}: it must have a pair for each of ${targetModules.join(", ")}`)
  const unknown = found.names.find((name) => !wanted.has(name))
  if (unknown !== undefined)
    throw misfit(directory, `holds ${quote(unknown)}, for which the model has no place: give the model it was made for`)
  for (const [name, shape] of wanted) {
    const stored = found.info(name).shape
    if (stored.join() === shape.join()) continue
    const sizes = `[${stored.slice(0, 8).join(", ")}] instead of [${shape.join(", ")}]`
    throw misfit(directory, `has ${quote(name)} of shape ${sizes}: give the model it was made for`)
  }
}

function misfit(directory: string, what: string): GigpoError {
  return new GigpoError("BAD_MODEL", `The adapter in ${directory} ${what}.`)
}
