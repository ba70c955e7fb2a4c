import { type ConfigFields, configFields, describe } from "./config-fields.ts"

/** Rescaling of the rotary frequencies of Llama 3 (arXiv 2407.21783). */
export interface RopeScaling {
  readonly factor: number
  readonly lowFrequencyFactor: number
  readonly highFrequencyFactor: number
  readonly originalMaxPositions: number
}

/**
 * Reads the rotary positions in both layouts: `rope_theta` next to `rope_scaling` (transformers 4), or both within
 * `rope_parameters` (transformers 5). In a file with both, precedence is that of transformers 5: `rope_scaling` over
 * `rope_parameters`, and a base inside the object over one outside.
 *
 * @throws GigpoError `BAD_MODEL` for a type other than "default" and "llama3"
 */
export function parseRotary(
  config: ConfigFields,
  maxPositions: number,
  file: string,
): { ropeTheta: number; ropeScaling?: RopeScaling } {
  const key = isFilled(config.json.rope_scaling) ? "rope_scaling" : "rope_parameters"
  const rope = configFields(config.json[key] ?? {}, `${file}, ${key}`)
  if (Object.values(rope.json).some((value) => typeof value === "object" && value !== null && !Array.isArray(value))) {
    throw rope.fail("rotary positions that differ between layers are not supported")
  }
  for (const { json, fail } of [config, rope]) {
    const share = json.partial_rotary_factor ?? 1
    if (share !== 1) throw fail(`partial_rotary_factor is ${describe(share)}; only 1 is supported`)
  }
  const ropeTheta = rope.positive("rope_theta", config.positive("rope_theta", 10_000))

  const type = rope.json.rope_type ?? rope.json.type ?? "default"
  if (type === "default") return { ropeTheta }
  if (type !== "llama3") {
    throw rope.fail(`the rope type ${describe(type)} is not supported, only "default" and "llama3" are`)
  }
  const ropeScaling = {
    factor: rope.positive("factor"),
    lowFrequencyFactor: rope.positive("low_freq_factor"),
    highFrequencyFactor: rope.positive("high_freq_factor"),
    // A value outside the object has precedence, as in transformers 5.
    originalMaxPositions: config.size(
      "original_max_position_embeddings",
      2 ** 30,
      rope.size("original_max_position_embeddings", 2 ** 30, maxPositions),
    ),
  }
  if (ropeScaling.highFrequencyFactor <= ropeScaling.lowFrequencyFactor) {
    throw rope.fail("high_freq_factor must be above low_freq_factor")
  }
  return { ropeTheta, ropeScaling }
}

function isFilled(value: unknown): boolean {
  return typeof value === "object" && value !== null
    ? Object.keys(value).length > 0
    : value !== undefined && value !== null
}

/** Returns the field `rope_scaling` of config.json. */
export function ropeScalingJson(scaling: RopeScaling): Readonly<Record<string, unknown>> {
  return {
    rope_type: "llama3",
    factor: scaling.factor,
    low_freq_factor: scaling.lowFrequencyFactor,
    high_freq_factor: scaling.highFrequencyFactor,
    original_max_position_embeddings: scaling.originalMaxPositions,
  }
}
