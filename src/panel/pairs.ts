import { GigpoError } from "../util/errors.ts"
import { byTask, type TaskEpisodes } from "./by-task.ts"
import { shortDigest } from "./digest-text.ts"
import type { PanelEvaluation } from "./evaluation-file.ts"

/** Results of one task in two evaluations. */
export interface Pair {
  readonly first: TaskEpisodes
  readonly second: TaskEpisodes
}

/**
 * Returns the tasks of two evaluations as pairs.
 *
 * @throws GigpoError `BAD_ARGUMENT` where the evaluations are of different panels, versions or worlds
 */
export function pairsOf(a: PanelEvaluation, b: PanelEvaluation): Pair[] {
  const fail = (what: string, first: string, second: string): never => {
    const fix = "evaluate both models on the same panel with the same version of gigpo"
    throw new GigpoError("BAD_ARGUMENT", `The evaluations are of different ${what}: ${first} and ${second}; ${fix}.`)
  }
  const { panel, digests } = a.header
  if (panel !== b.header.panel) fail("panels", panel, b.header.panel)
  if (digests.world !== b.header.digests.world) {
    fail(`worlds, by the digests of ${panel}`, shortDigest(digests.world), shortDigest(b.header.digests.world))
  }
  const [first, second] = [a, b].map(({ header, episodes }) => byTask(episodes, header.repeats)) as [
    TaskEpisodes[],
    TaskEpisodes[],
  ]
  const key = (task: TaskEpisodes | undefined) => task?.[0]?.key ?? "none"
  for (let task = 0; task < Math.max(first.length, second.length); task++) {
    const [one, other] = [key(first[task]), key(second[task])]
    if (one !== other) fail(`tasks, from number ${task} on`, one, other)
  }
  return first.map((episodes, task) => ({ first: episodes, second: second[task]! }))
}
