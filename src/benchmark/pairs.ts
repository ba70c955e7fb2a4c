import { GigpoError } from "../util/errors.ts"
import { byTask, type TaskEpisodes } from "./by-task.ts"
import { shortDigest } from "./digest-text.ts"
import type { BenchmarkEvaluation } from "./evaluation-file.ts"

/** Results of one task in two evaluations. */
export interface Pair {
  readonly first: TaskEpisodes
  readonly second: TaskEpisodes
}

/**
 * Returns the tasks of two evaluations as pairs.
 *
 * @throws GigpoError `BAD_ARGUMENT` where the evaluations are of different benchmarks, versions or environments
 */
export function pairsOf(a: BenchmarkEvaluation, b: BenchmarkEvaluation): Pair[] {
  const fail = (what: string, first: string, second: string): never => {
    const fix = "evaluate both models on the same benchmark with the same version of gigpo"
    throw new GigpoError("BAD_ARGUMENT", `The evaluations are of different ${what}: ${first} and ${second}; ${fix}.`)
  }
  const { benchmark, digests } = a.header
  if (benchmark !== b.header.benchmark) fail("benchmarks", benchmark, b.header.benchmark)
  if (digests.environment !== b.header.digests.environment) {
    fail(
      `environments, by the digests of ${benchmark}`,
      shortDigest(digests.environment),
      shortDigest(b.header.digests.environment),
    )
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
