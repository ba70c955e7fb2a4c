import { atOnce, type Pieces } from "../util/pace.ts"
import { clamp, maxLogRatio } from "./policy-ratio.ts"
import { trainerLogRatiosInPieces } from "./trainer-log-ratios.ts"

/** Largest exponent x such that sums of many e^x are finite. */
const largestExponent = 700

/**
 * Returns metrics of the sampler–trainer mismatch: the difference of the log-probabilities of sampler and trainer at the same weights. With
 * l = log p_trainer - log p_sampler of a token and D = mean of -l over a sequence:
 *
 * - "mismatch/kl", "mismatch/k3": KL(sampler ‖ trainer) in nats, means over tokens of -l and of e^l - l - 1 (Schulman, 2020)
 * - "mismatch/chi2-token", "mismatch/chi2-sequence": χ² divergence, a measure of the variance of the importance weights: the mean over
 *   tokens of e^2l - 1, or the mean over sequences with the sum of their l
 * - "mismatch/training-perplexity", "mismatch/rollout-perplexity": exp(-mean of log p) of a sequence by trainer and sampler; their
 *   logarithms, "mismatch/training-log-perplexity" and "mismatch/rollout-log-perplexity", and "mismatch/perplexity-ratio", e^D: means over
 *   sequences
 * - "mismatch/log-perplexity-difference", "-absolute-difference", "-difference-max", "-difference-min": statistics of D and |D| over
 *   sequences
 *
 * The l of χ², or their sum, is clamped to ±20 before it is doubled; the other exponents are bounded so that results are finite. Tokens
 * that the trainer has not computed (NaN) are left out.
 *
 * @param trainer - log p of each sampled token before the first update, [tokens].
 * @param sampler - log p of each token at the time of sampling, [tokens].
 * @param offsets - sequence s holds tokens offsets[s] … offsets[s + 1] - 1, [sequences + 1].
 * @returns metrics by name; an empty object if the trainer has computed no token
 * @throws GigpoError `BAD_ARGUMENT` for columns of wrong length, `NON_FINITE` for a number that is neither finite nor such a NaN.
 */
export function mismatchMetrics(
  trainer: ArrayLike<number>,
  sampler: ArrayLike<number>,
  offsets: ArrayLike<number>,
): Readonly<Record<string, number>> {
  return atOnce(mismatchInPieces(trainer, sampler, offsets))
}

/** `mismatchMetrics` for many tokens, which pauses between sequences. */
export function* mismatchInPieces(
  trainer: ArrayLike<number>,
  sampler: ArrayLike<number>,
  offsets: ArrayLike<number>,
): Pieces<Readonly<Record<string, number>>> {
  const logRatios = yield* trainerLogRatiosInPieces(trainer, sampler, offsets)
  const sequences: { training: number; rollout: number; difference: number; logRatio: number }[] = []
  let [tokens, kl, k3, chi2] = [0, 0, 0, 0]
  for (let s = 0; s + 1 < offsets.length; s++) {
    yield
    let [count, training, rollout] = [0, 0, 0]
    for (let t = offsets[s]!; t < offsets[s + 1]!; t++) {
      const logRatio = logRatios[t]!
      if (Number.isNaN(logRatio)) continue
      count++
      training -= trainer[t]!
      rollout -= sampler[t]!
      kl -= logRatio
      k3 += Math.expm1(Math.min(logRatio, largestExponent)) - logRatio
      chi2 += Math.expm1(2 * bounded(logRatio))
    }
    if (count === 0) continue
    tokens += count
    const [logRatio, difference] = [rollout - training, (training - rollout) / count]
    sequences.push({ training: training / count, rollout: rollout / count, logRatio, difference })
  }
  if (tokens === 0) return {}
  const mean = (of: (sequence: (typeof sequences)[number]) => number) =>
    sequences.reduce((sum, sequence) => sum + of(sequence), 0) / sequences.length
  const differences = sequences.map(({ difference }) => difference)
  return {
    "mismatch/kl": kl / tokens,
    "mismatch/k3": k3 / tokens,
    "mismatch/chi2-token": chi2 / tokens,
    "mismatch/chi2-sequence": mean(({ logRatio }) => Math.expm1(2 * bounded(logRatio))),
    "mismatch/training-perplexity": mean(({ training }) => exp(training)),
    "mismatch/training-log-perplexity": mean(({ training }) => training),
    "mismatch/rollout-perplexity": mean(({ rollout }) => exp(rollout)),
    "mismatch/rollout-log-perplexity": mean(({ rollout }) => rollout),
    "mismatch/perplexity-ratio": mean(({ difference }) => exp(difference)),
    "mismatch/log-perplexity-difference": mean(({ difference }) => difference),
    "mismatch/log-perplexity-absolute-difference": mean(({ difference }) => Math.abs(difference)),
    "mismatch/log-perplexity-difference-max": differences.reduce((a, b) => Math.max(a, b)),
    "mismatch/log-perplexity-difference-min": differences.reduce((a, b) => Math.min(a, b)),
  }
}

function exp(x: number): number {
  return Math.exp(Math.min(x, largestExponent))
}

function bounded(logRatio: number): number {
  return clamp(logRatio, -maxLogRatio, maxLogRatio)
}
