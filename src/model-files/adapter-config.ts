import { type ConfigFields, describe } from "./config-fields.ts"
import type { Head } from "./model-config.ts"
import { quote } from "./strict-json.ts"

/** Projections that LoRA matrices can be attached to, by their PEFT names and in the order of the engine. */
export const projections = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"] as const

/** Fields of PEFT's `LoraConfig` that define a LoRA adapter. */
export interface AdapterConfig {
  readonly rank: number
  readonly alpha: number
  /**
   * Modules with LoRA matrices: a list of names or of their last parts, or a regular expression for the full name.
   * Default: all projections.
   */
  readonly targetModules?: readonly string[] | string | undefined
  readonly excludeModules?: readonly string[] | string | undefined
  readonly layersToTransform?: readonly number[] | undefined
  readonly layersPattern?: readonly string[] | undefined
  /** Ranks of individual modules. The key is a regular expression for the end of the name. */
  readonly rankPattern?: Readonly<Record<string, number>> | undefined
  /** Alphas of individual modules. The key is a regular expression for the end of the name. */
  readonly alphaPattern?: Readonly<Record<string, number>> | undefined
  /** Whether the scale is alpha / √rank instead of alpha / rank (rsLoRA). Default false. */
  readonly useRslora?: boolean | undefined
  /** Ends of names of modules whose full weights are trained as copies: embedding, head or norms. */
  readonly modulesToSave?: readonly string[] | undefined
  /** Whether tied embedding and head share one copy. Default false. */
  readonly ensureWeightTying?: boolean | undefined
}

/**
 * Reads the fields of adapter_config.json that define an adapter. Missing fields have PEFT's defaults.
 *
 * @throws GigpoError `BAD_MODEL`
 */
export function parseAdapterConfig(fields: ConfigFields): AdapterConfig {
  const { json, fail } = fields
  const targetModules = targets(fields)
  const layersToTransform = layers(fields)
  const layersPattern = texts(fields, "layers_pattern")
  if (typeof targetModules === "string" && (layersToTransform || layersPattern))
    throw fail("layers_to_transform and layers_pattern cannot be used where target_modules is a regular expression")
  if (layersPattern && !layersToTransform) throw fail("layers_pattern needs layers_to_transform")
  const excluded = json.exclude_modules
  return only({
    rank: fields.size("r", 65536, 8),
    alpha: fields.positive("lora_alpha", 8),
    targetModules,
    excludeModules: typeof excluded === "string" && excluded !== "" ? excluded : texts(fields, "exclude_modules"),
    layersToTransform,
    layersPattern,
    rankPattern: pattern(fields, "rank_pattern"),
    alphaPattern: pattern(fields, "alpha_pattern"),
    useRslora: fields.flag("use_rslora") || undefined,
    modulesToSave: texts(fields, "modules_to_save"),
    ensureWeightTying: fields.flag("ensure_weight_tying") || undefined,
  })
}

/** Returns the fields of adapter_config.json for an adapter. A critic's head is always among `modules_to_save`. */
export function adapterConfigJson(config: AdapterConfig, head: Head): Record<string, unknown> {
  const saved = config.modulesToSave ?? []
  const whole = head === "value" ? [...saved.filter((name) => !/(^|\.)(lm_head|score)$/.test(name)), "score"] : saved
  return {
    task_type: head === "value" ? "SEQ_CLS" : "CAUSAL_LM",
    r: config.rank,
    lora_alpha: config.alpha,
    target_modules: config.targetModules ?? projections,
    exclude_modules: config.excludeModules ?? null,
    layers_to_transform: config.layersToTransform ?? null,
    layers_pattern: config.layersPattern ?? null,
    rank_pattern: config.rankPattern ?? {},
    alpha_pattern: config.alphaPattern ?? {},
    use_rslora: config.useRslora ?? false,
    modules_to_save: whole.length > 0 ? whole : null,
    ensure_weight_tying: config.ensureWeightTying ?? false,
  }
}

/** PEFT's default target modules for Qwen2, Qwen3, Llama and Mistral. */
const defaultTargets = ["q_proj", "v_proj"]

function targets(fields: ConfigFields): AdapterConfig["targetModules"] {
  const given = fields.json.target_modules ?? defaultTargets
  if (typeof given === "string") return given.toLowerCase() === "all-linear" ? undefined : given
  const names = new Set(texts(fields, "target_modules") ?? (given === defaultTargets ? defaultTargets : []))
  const all = names.size === projections.length && projections.every((name) => names.has(name))
  return all ? undefined : [...names]
}

function texts({ json, fail }: ConfigFields, key: string): readonly string[] | undefined {
  const value = json[key] ?? undefined
  const list = typeof value === "string" ? (value === "" ? [] : [value]) : value
  if (list === undefined) return undefined
  if (!Array.isArray(list) || !list.every((one) => typeof one === "string"))
    throw fail(`${key} is ${describe(value)}; it must be a list of names`)
  return list.length > 0 ? list : undefined
}

function layers({ json, fail }: ConfigFields): readonly number[] | undefined {
  const value = json.layers_to_transform ?? undefined
  const list = typeof value === "number" ? [value] : value
  if (list === undefined) return undefined
  if (!Array.isArray(list) || !list.every((one) => Number.isSafeInteger(one) && one >= 0))
    throw fail(`layers_to_transform is ${describe(value)}; it must be a list of integers from 0`)
  return list.length > 0 ? list : undefined
}

function pattern({ json, fail }: ConfigFields, key: string): Readonly<Record<string, number>> | undefined {
  const value = json[key] ?? {}
  if (typeof value !== "object" || Array.isArray(value)) throw fail(`${key} must be an object of names and numbers`)
  const entries = Object.entries(value as Record<string, unknown>)
  for (const [name, number] of entries) {
    const fits = typeof number === "number" && number > 0 && Number.isFinite(number)
    if (fits && (key === "alpha_pattern" || (Number.isInteger(number) && number <= 65536))) continue
    throw fail(
      `${key} of ${quote(name)} is ${describe(number)}; it must be a number above 0, and an integer up to 65536 for ranks`,
    )
  }
  return entries.length > 0 ? (value as Record<string, number>) : undefined
}

/** Returns a copy without the fields that are undefined. */
export function only<T extends object>(values: T): T {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as T
}
