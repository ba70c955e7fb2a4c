import { lowestTemperature } from "../engine/check-arguments.ts"
import { integer, limit, number, scheduled } from "../options/field.ts"
import { fixed } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"

/** How episodes are sampled. */
export const rolloutFields = {
  // 0 would do to sample, but has no gradient.
  temperature: scheduled(number(1, "Sampling temperature.", { min: lowestTemperature })),
  maxCompletionTokens: integer(512, "Most tokens of one reply.", { min: 1 }),
  concurrency: integer(128, "Episodes in flight at once; changes speed only, never the result.", {
    min: 1,
    max: 65_536,
  }),
  maxSteps: integer(1000, "Steps after which an episode is cut off, for environments that set no limit of their own.", {
    min: 1,
  }),
  environmentTimeout: number(
    60,
    "An episode whose environment takes longer than this for one call, in seconds, has failed.",
    { above: 0 },
  ),
  turnTimeout: limit(
    Number.POSITIVE_INFINITY,
    "An episode in which a turn (prompt, reply and the environment's step) takes longer than this, in seconds, has failed.",
    { above: 0 },
  ),
  episodeTimeout: limit(Number.POSITIVE_INFINITY, "An episode that takes longer than this, in seconds, has failed.", {
    above: 0,
  }),
  groupTimeout: limit(
    Number.POSITIVE_INFINITY,
    "Seconds from the beginning of a group's first episode, after which those of its episodes that are not over have failed.",
    { above: 0 },
  ),
  maxRetries: integer(0, "Most times that an episode that failed is played again, on a fresh environment.", { min: 0 }),
  minGroupSize: integer(
    1,
    "Episodes that a group must have left, without failed and dropped ones, for the group to be learned from.",
    { min: 1 },
  ),
  maxResamples: integer(3, "Most times that a turn is sampled again, where `onTurn` asks for it.", { min: 0 }),
  maxForks: integer(4, "Most branches that an episode and its branches may have, where `onTurn` forks.", { min: 0 }),
  maxRefillRounds: integer(10, "Most rounds in which groups that `keep` dropped are replaced.", { min: 0 }),
}

/** Options of sampling episodes. */
export type RolloutOptions = OptionsOf<typeof rolloutFields>

/** For what plays without a run, and so without schedules. */
export const rolloutDefaults = readOptions("rollout", {}, fixed(rolloutFields))
