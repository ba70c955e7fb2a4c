import { number, scheduled } from "../options/field.ts"
import { fixed } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"

export const dgpoWeightFields = {
  tau: scheduled(number(0.5, "Temperature of the softmax: the lower, the more few tokens get.", { above: 0 })),
  kappa: scheduled(number(1, "Exponent of the entropy: 0 lets the distance alone decide.", { min: 0 })),
}

const weightNumbers = fixed(dgpoWeightFields)

/** Its numbers, come from schedules. */
export type DgpoWeightOptions = OptionsOf<typeof weightNumbers>

/**
 * How the advantage of a sequence is divided among its tokens, [tokens]: by how far each distribution has moved from the reference where
 * it is uncertain. Their mean is 1:
 *
 *     w = n softmax(s / tau);  s = d H^kappa
 *
 * @param distances Hellinger distances d of policy and reference at each token, 0 to 1
 * @param entropies H of the policy at each token, scaled as is wanted, at least 0
 * @throws GigpoError `BAD_ARGUMENT` for an option that has no meaning or columns of different lengths, `NON_FINITE` for a number that is
 * not finite.
 */
export function dgpoWeights(
  distances: ArrayLike<number>,
  entropies: ArrayLike<number>,
  given: DgpoWeightOptions = {},
): Float64Array {
  const { tau, kappa } = readOptions("dgpoWeights", given, weightNumbers)
  const tokens = distances.length
  if (entropies.length !== tokens)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `There are ${tokens} distances and ${entropies.length} entropies; give one each.`,
    )
  const scores = Float64Array.from(distances, (distance, t) => (distance * Math.max(entropies[t]!, 0) ** kappa) / tau)
  const wrong = scores.findIndex((score) => !Number.isFinite(score))
  if (wrong >= 0)
    throw new GigpoError(
      "NON_FINITE",
      `Token ${wrong} has the distance ${distances[wrong]} and the entropy ${entropies[wrong]}; give finite numbers.`,
    )
  const largest = scores.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY)
  const weights = scores.map((score) => Math.exp(score - largest))
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  return weights.map((weight) => (tokens * weight) / total)
}
