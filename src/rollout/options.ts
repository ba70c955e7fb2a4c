import { lowestTemperature } from "../engine/check-arguments.ts"
import { limit, number, scheduled, whole } from "../options/field.ts"
import { fixed } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"

/** How episodes are sampled. */
export const rolloutFields = {
  // 0 would do to sample, but has no gradient.
  temperature: scheduled(number(1, "Sampling temperature.", { least: lowestTemperature })),
  maxReplyTokens: whole(512, "Most tokens of one reply.", { least: 1 }),
  concurrency: whole(128, "Episodes in flight at once; changes speed only, never the result.", {
    least: 1,
    most: 65_536,
  }),
  maxSteps: whole(1000, "Steps after which an episode is cut off, for environments that set no limit of their own.", {
    least: 1,
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
  retries: whole(0, "Most times that an episode that failed is played again, on a fresh environment.", { least: 0 }),
  leastGroupSize: whole(
    1,
    "Episodes that a group must have left, without failed and dropped ones, for the group to be learned from.",
    { least: 1 },
  ),
  resamples: whole(3, "Most times that a turn is sampled again, where `onTurn` asks for it.", { least: 0 }),
  forks: whole(4, "Most branches that an episode and its branches may have, where `onTurn` forks.", { least: 0 }),
  refills: whole(10, "Most rounds in which groups that `keep` dropped are replaced.", { least: 0 }),
}

export type RolloutOptions = OptionsOf<typeof rolloutFields>

/** For what plays without a run, and so without schedules. */
export const rolloutDefaults = readOptions("rollout", {}, fixed(rolloutFields))
