import { GigpoError } from "../util/errors.ts"

/**
 * How much likelier the trainer finds each token than the sampler did: log p_trainer - log p_sampler, [tokens]. NaN where the
 * trainer's is NaN, which is to say that it has not computed it.
 *
 * @param offsets sequence s holds tokens offsets[s] … offsets[s + 1] - 1, [sequences + 1]
 * @throws GigpoError `BAD_ARGUMENT` for columns of different lengths or offsets that do not divide them, `NON_FINITE` for another
 * number that is not finite.
 */
export function trainerLogRatios(
  trainer: ArrayLike<number>,
  sampler: ArrayLike<number>,
  offsets: ArrayLike<number>,
): Float64Array {
  const tokens = trainer.length
  if (sampler.length !== tokens)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `There are ${tokens} log-probabilities of the trainer and ${sampler.length} of the sampler; give both for every token.`,
    )
  const bounds = Array.from(offsets)
  if (bounds[0] !== 0 || bounds.at(-1) !== tokens || bounds.some((bound, s) => s > 0 && !(bound >= bounds[s - 1]!)))
    throw new GigpoError("BAD_ARGUMENT", `offsets must rise from 0 to the number of tokens, which is ${tokens}.`)
  return new Float64Array(tokens).map((_, t) => {
    const difference = trainer[t]! - sampler[t]!
    if (Number.isFinite(difference) || (Number.isNaN(trainer[t]) && Number.isFinite(sampler[t]))) return difference
    throw new GigpoError(
      "NON_FINITE",
      `Token ${t} has log-probability ${trainer[t]} by the trainer and ${sampler[t]} by the sampler; give finite numbers ` +
        "(NaN where the trainer did not compute one).",
    )
  })
}
