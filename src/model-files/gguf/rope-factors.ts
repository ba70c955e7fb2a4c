import type { Llama3Scaling } from "../../native/model.ts"

/** Llama 3.1, 3.2 and 3.3 use these; a GGUF file holds the resulting factors only. */
const published = { type: "llama3", lowFrequencyFactor: 1, highFrequencyFactor: 4, originalMaxPositions: 8192 } as const

/**
 * Returns the divisors of the rotary frequencies, [headSize / 2] (Llama 3 report, arXiv 2407.21783, §3.4.2; as in transformers).
 *
 * With wavelength λ and original context length L: 1 if λ < L / high, `factor` where λ > L / low, and in between
 * 1 / ((1 − s) / factor + s) with s = (L / λ − low) / (high − low).
 */
export function llama3Factors(scaling: Llama3Scaling, headSize: number, base: number): Float32Array {
  const { factor, lowFrequencyFactor: low, highFrequencyFactor: high, originalMaxPositions } = scaling
  return Float32Array.from({ length: headSize / 2 }, (_, i) => {
    const turns = originalMaxPositions / (2 * Math.PI * base ** ((2 * i) / headSize))
    const share = Math.min(1, Math.max(0, (turns - low) / (high - low)))
    return 1 / ((1 - share) / factor + share)
  })
}

/** Returns the rope scaling with these factors, or undefined if they are not those of a published Llama 3 model. */
export function llama3Scaling(factors: Float32Array, headSize: number, base: number): Llama3Scaling | undefined {
  const scaling = { factor: factors.reduce((a, b) => Math.max(a, b), 1), ...published }
  const expected = llama3Factors(scaling, headSize, base)
  const fits = factors.length === expected.length && factors.every((one, i) => Math.abs(one / expected[i]! - 1) < 1e-4)
  return fits ? scaling : undefined
}
