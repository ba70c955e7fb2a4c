import { oneOf } from "../options/field.ts"
import { only } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import { scheduleValues } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { clippedSurrogate } from "./clipped-surrogate.ts"
import { defineLoss } from "./define-loss.ts"
import { dgpoWeightFields, dgpoWeights } from "./dgpo-weights.ts"
import { clipFields } from "./options.ts"
import type { LossInput, TokenLoss } from "./token-loss.ts"

const clips = clipFields(0.2, 0.2)

export const dgpoFields = {
  ...dgpoWeightFields,
  entropyScale: oneOf(
    "sequence",
    ["sequence", "batch", "none"],
    "What entropies are divided by: the largest of the sequence, that of the batch, or nothing, so that they are in nats.",
  ),
  ...clips,
}

/** Options of `dgpo`. */
export type DgpoOptions = OptionsOf<typeof dgpoFields>

/**
 * DGPO (arXiv 2605.03327): PPO's clipped surrogate of advantages A w that each sequence's tokens share by `dgpoWeights`, which are
 * constants. The KL that it does without is `klWeight: 0`, the default. Our reading: how entropies are scaled to 0 to 1, which the
 * definition does not say. Reports what `clippedSurrogate` does, "policy/hellinger", the mean distance, and "policy/largest-weight".
 *
 * @throws GigpoError `BAD_ARGUMENT` for an option that has no meaning.
 */
export const dgpo = defineLoss({
  name: "dgpo",
  fields: dgpoFields,
  about: {
    system: "DGPO (Distribution Guided PO)",
    origin: "successor",
    changes: ["tokens", "loss"],
    equation: "the clipped surrogate of A w, w = n softmax(d H^κ / τ), d the Hellinger distance from the reference",
    source: "arXiv 2605.03327, by a minimal implementation of others",
    standing: "reading",
    note: "How entropies are scaled is our reading. Asks for the reference's whole distributions, by one forward pass more.",
  },
  make(given: DgpoOptions = {}): TokenLoss {
    const options = readOptions("dgpo", given, dgpoFields)
    const surrogate = clippedSurrogate({ ...only(options, clips), clipDual: Infinity, skipZeroAdvantage: false })
    return {
      name: "dgpo",
      needs: ["entropy", "hellinger"],
      evaluate(input) {
        const { tokens, offsets, advantages, entropies, hellingers } = input
        if (!entropies || !hellingers)
          throw new GigpoError(
            "BAD_ARGUMENT",
            "dgpo reads entropies and Hellinger distances from the reference: give both columns.",
          )
        const { tau, kappa, entropyScale } = scheduleValues(options, input.moment)
        const scaled = scaledEntropies(input, entropies, entropyScale)
        const weights = new Float64Array(tokens)
        for (let s = 0; s + 1 < offsets.length; s++) {
          const [start, end] = [offsets[s]!, offsets[s + 1]!]
          weights.set(dgpoWeights(hellingers.subarray(start, end), scaled.subarray(start, end), { tau, kappa }), start)
        }
        const output = surrogate.evaluate({ ...input, advantages: weights.map((weight, t) => weight * advantages[t]!) })
        let distance = 0
        for (const one of hellingers) distance += one / tokens
        const metrics = {
          "policy/hellinger": distance,
          "policy/largest-weight": weights.reduce((a, b) => Math.max(a, b), 0),
        }
        return { ...output, metrics: { ...output.metrics, ...metrics } }
      },
    }
  },
})

function scaledEntropies(
  { tokens, offsets }: LossInput,
  entropies: ArrayLike<number>,
  by: "sequence" | "batch" | "none",
): Float64Array {
  const scaled = Float64Array.from(entropies)
  const bounds = by === "sequence" ? offsets : by === "batch" ? [0, tokens] : []
  for (let s = 0; s + 1 < bounds.length; s++) {
    const part = scaled.subarray(bounds[s], bounds[s + 1])
    const largest = part.reduce((a, b) => Math.max(a, b), 0)
    if (largest > 0) part.set(part.map((entropy) => entropy / largest))
  }
  return scaled
}
