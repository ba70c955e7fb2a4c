import type { Llama3Scaling, RopeScaling, Rotary, YarnScaling } from "../native/model.ts"
import { type ConfigFields, configFields, describe } from "./config-fields.ts"

const yarnDefaults = { betaFast: 32, betaSlow: 1 } as const

/** Factor of cosines and sines where a YaRN model states none: 0.1 ln(factor) + 1, as in the paper. */
export function yarnAttentionFactor(factor: number, mscale = 1): number {
  return factor <= 1 ? 1 : 0.1 * mscale * Math.log(factor) + 1
}

/**
 * Reads the rotary positions in both layouts: `rope_theta` next to `rope_scaling` (transformers 4), or both within
 * `rope_parameters` (transformers 5). In a file with both, precedence is that of transformers 5: `rope_scaling` over
 * `rope_parameters`, and a base inside the object over one outside.
 *
 * @throws GigpoError `BAD_MODEL` for a type other than "default", "llama3" and "yarn"
 */
export function parseRotary(
  config: ConfigFields,
  byDefault: { readonly maxPositions: number; readonly ropeTheta: number },
  file: string,
): Rotary {
  const key = isFilled(config.json.rope_scaling) ? "rope_scaling" : "rope_parameters"
  const rope = configFields(config.json[key] ?? {}, `${file}, ${key}`)
  if (Object.values(rope.json).some((value) => typeof value === "object" && value !== null && !Array.isArray(value))) {
    throw rope.fail("rotary positions that differ between layers are not supported")
  }
  return parseTable(config, rope, { ...byDefault, ropeTheta: config.positive("rope_theta", byDefault.ropeTheta) })
}

/**
 * Reads the rotary positions of an architecture whose layers with sliding windows have a table of their own, table 1: `rope_theta`,
 * `rope_scaling` and `rope_local_base_freq` (transformers 4), or `rope_parameters` with an entry for each kind of layer (transformers 5).
 *
 * @throws GigpoError `BAD_MODEL`
 */
export function parseLayerRotary(
  config: ConfigFields,
  byDefault: { readonly maxPositions: number; readonly ropeTheta: number; readonly localRopeTheta: number },
  file: string,
): Rotary & { readonly otherRotary: readonly Rotary[] } {
  const given = configFields(config.json.rope_parameters ?? {}, `${file}, rope_parameters`)
  const strange = Object.keys(given.json).find((key) => key !== "full_attention" && key !== "sliding_attention")
  if (strange !== undefined)
    throw given.fail(`${strange} is not within full_attention or sliding_attention, so that its layers are unknown`)
  const of = (kind: string, more: unknown = {}) =>
    configFields(
      { ...configFields(given.json[kind] ?? {}, `${file}, ${kind}`).json, ...(more as object) },
      `${file}, rotary positions of ${kind}`,
    )
  const full = of("full_attention", config.json.rope_scaling ?? {})
  const { maxPositions } = byDefault
  const ropeTheta = config.positive("rope_theta", byDefault.ropeTheta)
  const localTheta = config.positive("rope_local_base_freq", byDefault.localRopeTheta)
  const local = parseTable(config, of("sliding_attention"), { maxPositions, ropeTheta: localTheta })
  if (local.ropeScaling)
    throw given.fail(`the rope type "${local.ropeScaling.type}" is not supported in layers with sliding windows`)
  return { ...parseTable(config, full, { maxPositions, ropeTheta }), otherRotary: [local] }
}

/** Reads one table. `byDefault.ropeTheta` is the base where the table states none. */
function parseTable(
  config: ConfigFields,
  rope: ConfigFields,
  byDefault: { readonly maxPositions: number; readonly ropeTheta: number },
): Rotary {
  for (const { json, fail } of [config, rope]) {
    const share = json.partial_rotary_factor ?? 1
    if (share !== 1) throw fail(`partial_rotary_factor is ${describe(share)}; only 1 is supported`)
  }
  const ropeTheta = rope.positive("rope_theta", byDefault.ropeTheta)

  const type = rope.json.rope_type ?? rope.json.type ?? "default"
  if (type === "default") return { ropeTheta }
  if (type !== "llama3" && type !== "yarn") {
    throw rope.fail(`the rope type ${describe(type)} is not supported, only "default", "llama3" and "yarn" are`)
  }
  // A value outside the object has precedence, as in transformers 5.
  const originalMaxPositions = config.size(
    "original_max_position_embeddings",
    2 ** 30,
    rope.size("original_max_position_embeddings", 2 ** 30, byDefault.maxPositions),
  )
  if (type === "llama3") return { ropeTheta, ropeScaling: llama3Scaling(rope, originalMaxPositions) }
  if (ropeTheta <= 1) throw rope.fail(`rope_theta is ${ropeTheta}; YaRN needs one above 1`)
  // Null stands for the ratio of the two lengths.
  const factor = rope.json.factor === null ? byDefault.maxPositions / originalMaxPositions : rope.positive("factor")
  return { ropeTheta, ropeScaling: yarnScaling(rope, factor, originalMaxPositions) }
}

function llama3Scaling(rope: ConfigFields, originalMaxPositions: number): Llama3Scaling {
  const lowFrequencyFactor = rope.positive("low_freq_factor")
  const highFrequencyFactor = rope.positive("high_freq_factor")
  if (highFrequencyFactor <= lowFrequencyFactor) throw rope.fail("high_freq_factor must be above low_freq_factor")
  const factor = rope.positive("factor")
  return { type: "llama3", factor, lowFrequencyFactor, highFrequencyFactor, originalMaxPositions }
}

function yarnScaling(rope: ConfigFields, factor: number, originalMaxPositions: number): YarnScaling {
  // 0 counts as missing in transformers.
  const given = (key: string) => ((rope.json[key] ?? 0) === 0 ? undefined : rope.positive(key))
  const [mscale, allDimensions] = [given("mscale"), given("mscale_all_dim")]
  const inferred =
    mscale !== undefined && allDimensions !== undefined
      ? yarnAttentionFactor(factor, mscale) / yarnAttentionFactor(factor, allDimensions)
      : yarnAttentionFactor(factor)
  return {
    type: "yarn",
    factor,
    attentionFactor: rope.positive("attention_factor", inferred),
    betaFast: given("beta_fast") ?? yarnDefaults.betaFast,
    betaSlow: given("beta_slow") ?? yarnDefaults.betaSlow,
    // Missing, it is true; null counts as false.
    truncate: rope.json.truncate === undefined || rope.flag("truncate"),
    originalMaxPositions,
  }
}

/** Whether frequencies follow from the factor and the original length alone, the rest being YaRN's defaults. */
export function isPlainYarn(scaling: YarnScaling): boolean {
  const { betaFast, betaSlow, truncate } = scaling
  return betaFast === yarnDefaults.betaFast && betaSlow === yarnDefaults.betaSlow && truncate
}

function isFilled(value: unknown): boolean {
  return typeof value === "object" && value !== null
    ? Object.keys(value).length > 0
    : value !== undefined && value !== null
}

/** Returns the field `rope_scaling` of config.json. */
export function ropeScalingJson(scaling: RopeScaling): Readonly<Record<string, unknown>> {
  if (scaling.type === "yarn") {
    const { factor, attentionFactor, betaFast, betaSlow, truncate, originalMaxPositions } = scaling
    return {
      rope_type: "yarn",
      factor,
      ...(attentionFactor !== yarnAttentionFactor(factor) && { attention_factor: attentionFactor }),
      ...(betaFast !== yarnDefaults.betaFast && { beta_fast: betaFast }),
      ...(betaSlow !== yarnDefaults.betaSlow && { beta_slow: betaSlow }),
      ...(!truncate && { truncate }),
      original_max_position_embeddings: originalMaxPositions,
    }
  }
  return {
    rope_type: "llama3",
    factor: scaling.factor,
    low_freq_factor: scaling.lowFrequencyFactor,
    high_freq_factor: scaling.highFrequencyFactor,
    original_max_position_embeddings: scaling.originalMaxPositions,
  }
}
