import { lowestTemperature } from "../engine/check-arguments.ts"
import { boolean, integer, limit, number, scheduled } from "../options/field.ts"
import { fixed } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"

/** Options of the sampling of episodes. */
export const rolloutFields = {
  // Sampling also works at 0, but greedy decoding has no gradient.
  temperature: scheduled(number(1, "Sampling temperature.", { min: lowestTemperature })),
  maxCompletionTokens: integer(512, "Maximum length of a completion in tokens.", { min: 1 }),
  constrained: boolean(
    false,
    "Whether completions are sampled under the format of the environment, its `completionPattern` (constrained decoding). Small models " +
      "rarely follow a format unaided.",
  ),
  concurrency: integer(128, "Number of episodes in progress at once; affects speed only, not the results.", {
    min: 1,
    max: 65_536,
  }),
  maxSteps: integer(1000, "Maximum number of steps of an episode, for environments without a limit.", {
    min: 1,
  }),
  environmentTimeout: number(
    60,
    "Time limit of one call of the environment, in seconds; beyond it the episode fails.",
    { above: 0 },
  ),
  turnTimeout: limit(
    Number.POSITIVE_INFINITY,
    "Time limit of a turn (prompt, completion and step of the environment), in seconds; beyond it the episode fails.",
    { above: 0 },
  ),
  episodeTimeout: limit(
    Number.POSITIVE_INFINITY,
    "Time limit of an episode, in seconds; beyond it the episode fails.",
    {
      above: 0,
    },
  ),
  groupTimeout: limit(
    Number.POSITIVE_INFINITY,
    "Time limit of a group, in seconds from the start of its first episode; unfinished episodes of the group fail then.",
    { above: 0 },
  ),
  maxRetries: integer(0, "Maximum number of retries of a failed episode, each on a new environment episode.", {
    min: 0,
  }),
  minGroupSize: integer(
    1,
    "Minimum number of scored episodes (neither failed nor excluded) of a group that is trained on.",
    { min: 1 },
  ),
  maxResamples: integer(3, "Maximum number of times that `onTurn` may have a turn sampled again.", { min: 0 }),
  maxBranches: integer(4, "Maximum number of branches of an episode in total, where `onTurn` returns `branch`.", {
    min: 0,
  }),
  maxRefillRounds: integer(10, "Maximum number of rounds in which dropped groups are replaced.", { min: 0 }),
}

/** Options of the rollout. */
export type RolloutOptions = OptionsOf<typeof rolloutFields>

/** Default options without schedules, for episodes outside of a training run. */
export const rolloutDefaults = readOptions("rollout", {}, fixed(rolloutFields))
