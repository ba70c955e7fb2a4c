import { GigpoError } from "../util/errors.ts"
import { atOnce, type Pieces, tokensOfPiece } from "../util/pace.ts"

/**
 * Returns the log-ratios log p_trainer - log p_sampler, [tokens]. NaN if the log-probability of the trainer is NaN, which marks tokens
 * that the trainer has not computed.
 *
 * @param offsets - sequence s holds tokens offsets[s] … offsets[s + 1] - 1, [sequences + 1].
 * @throws GigpoError `BAD_ARGUMENT` for columns of different lengths or invalid offsets, `NON_FINITE` for a number that is neither finite
 * nor such a NaN.
 */
export function trainerLogRatios(
  trainer: ArrayLike<number>,
  sampler: ArrayLike<number>,
  offsets: ArrayLike<number>,
): Float64Array {
  return atOnce(trainerLogRatiosInPieces(trainer, sampler, offsets))
}

/** `trainerLogRatios` for many tokens, which pauses after every 4,096. */
export function* trainerLogRatiosInPieces(
  trainer: ArrayLike<number>,
  sampler: ArrayLike<number>,
  offsets: ArrayLike<number>,
): Pieces<Float64Array> {
  const tokens = trainer.length
  if (sampler.length !== tokens)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `There are ${tokens} log-probabilities of the trainer and ${sampler.length} of the sampler; give both for every token.`,
    )
  const bounds = Array.from(offsets)
  if (bounds[0] !== 0 || bounds.at(-1) !== tokens || bounds.some((bound, s) => s > 0 && !(bound >= bounds[s - 1]!)))
    throw new GigpoError("BAD_ARGUMENT", `offsets must not decrease from 0 to ${tokens}, the number of tokens.`)
  const ratios = new Float64Array(tokens)
  for (let t = 0; t < tokens; t++) {
    if (t % tokensOfPiece === 0) yield
    const difference = trainer[t]! - sampler[t]!
    if (!Number.isFinite(difference) && !(Number.isNaN(trainer[t]) && Number.isFinite(sampler[t])))
      throw new GigpoError(
        "NON_FINITE",
        `Token ${t} has log-probability ${trainer[t]} by the trainer and ${sampler[t]} by the sampler; give finite numbers ` +
          "(NaN where the trainer did not compute one).",
      )
    ratios[t] = difference
  }
  return ratios
}
