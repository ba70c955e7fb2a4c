import { integer, number } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import { vocabularyShare } from "./entropy-of.ts"

// T²PO's formulas (arXiv 2605.02178, as its code has them).

export const t2poScoreFields = {
  topWeight: number(0.6, "Weight of the log-probability of the most likely token in a token's score."),
  entropyWeight: number(0.4, "Weight of what a token's entropy lacks of log V, as a share of it."),
}

export type T2poScoreOptions = OptionsOf<typeof t2poScoreFields>

/**
 * How sure the policy was of each token: .6 max_v log p(v) + .4 (1 - H / log V), [tokens].
 *
 * @param mostLikely log-probability of the most likely token, [tokens]
 * @param entropies in nats, [tokens]
 */
export function t2poScore(
  mostLikely: ArrayLike<number>,
  entropies: ArrayLike<number>,
  vocabularySize: number,
  options: T2poScoreOptions = {},
): Float64Array {
  const { topWeight, entropyWeight } = readOptions("t2poScore", options, t2poScoreFields)
  return Float64Array.from(
    entropies,
    (entropy, t) => topWeight * mostLikely[t]! + entropyWeight * (1 - vocabularyShare(entropy, vocabularySize)),
  )
}

export const t2poCutFields = {
  flat: integer(20, "Changes of the score in a row, each at most `change`, after which a thought is ended.", {
    min: 1,
  }),
  change: number(1e-4, "Change of the score from one token to the next up to which it is flat.", { min: 0 }),
  thought: integer(450, "Tokens after which a thought is ended in any case.", { min: 1 }),
}

export type T2poCutOptions = OptionsOf<typeof t2poCutFields>

/** After how many of its tokens a thought of these scores is ended; undefined where it may go on. */
export function t2poCut(scores: ArrayLike<number>, options: T2poCutOptions = {}): number | undefined {
  const { flat, change, thought } = readOptions("t2poCut", options, t2poCutFields)
  let run = 0
  for (let t = 0; t < scores.length; t++) {
    run = t > 0 && Math.abs(scores[t]! - scores[t - 1]!) <= change ? run + 1 : 0
    if (run >= flat || t + 1 >= thought) return t + 1
  }
  return undefined
}

export const t2poResampleFields = {
  near: number(0.3, "A turn is sampled again where its score is nearer than this to that of the turn before.", {
    min: 0,
  }),
  tries: integer(2, "Most times that a turn is sampled again.", { min: 0 }),
}

export type T2poResampleOptions = OptionsOf<typeof t2poResampleFields>

/**
 * Whether a turn is sampled again: 0 < |s - s_before| < .3, at most twice, and never an episode's first turn.
 *
 * @param before the score of the turn before, the mean of its tokens'; undefined of the first
 * @param attempt how often this turn has been sampled again already
 */
export function t2poResamples(
  score: number,
  before: number | undefined,
  attempt: number,
  options: T2poResampleOptions = {},
): boolean {
  const { near, tries } = readOptions("t2poResamples", options, t2poResampleFields)
  const distance = before === undefined ? 0 : Math.abs(score - before)
  return attempt < tries && distance > 0 && distance < near
}
