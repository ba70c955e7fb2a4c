import { number, scheduled } from "../options/field.ts"
import { fixed } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"

export const dgpoWeightFields = {
  tau: scheduled(
    number(0.5, "Temperature of the softmax. Lower values concentrate the weight on fewer tokens.", { above: 0 }),
  ),
  kappa: scheduled(number(1, "Exponent of the entropy. 0 makes the weights depend on the distance alone.", { min: 0 })),
}

const weightNumbers = fixed(dgpoWeightFields)

/** Options of `dgpoWeights`. */
export type DgpoWeightOptions = OptionsOf<typeof weightNumbers>

/**
 * Returns DGPO's weights of the tokens of one sequence, [tokens], with mean 1. Tokens with high entropy whose distribution moved far from
 * the reference have large weights:
 *
 *     w = n softmax(s / tau);  s = d H^kappa
 *
 * @param distances - Hellinger distances d of policy and reference at each token, 0 to 1.
 * @param entropies - entropies H of the policy at each token, in any scale, at least 0.
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option or columns of different lengths, `NON_FINITE` for a number that is
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
      `There are ${tokens} distances and ${entropies.length} entropies; give one of each per token.`,
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
