import { mean } from "../training/mean.ts"
import { countSolved, type TaskEpisodes } from "./by-task.ts"
import { clusterInterval } from "./clusters.ts"
import type { MeasureComparison } from "./compare.ts"
import { mcnemarTest } from "./mcnemar.ts"
import { type MeanInterval, pairedInterval } from "./paired.ts"
import type { Pair } from "./pairs.ts"

/** Comparison of the success rates of two evaluations. */
export interface SuccessComparison extends MeasureComparison {
  /** Whether one of the two solves more tasks. */
  readonly test: {
    /** McNemar's exact test where each task was played once, else the exact sign test over the tasks whose shares differ. */
    readonly name: "McNemar" | "sign"
    /** Number of tasks that only the first solved, or solved more often. */
    readonly first: number
    /** Number of tasks that only the second solved, or solved more often. */
    readonly second: number
    /** Two-sided p-value. */
    readonly p: number
  }
  /** Comparisons by kind of task, where the environment reports kinds. */
  readonly kinds: Readonly<Record<string, MeasureComparison>>
  /** Keys of the tasks that the first solved at least once, and the second never. */
  readonly onlyFirst: readonly string[]
  /** Keys of the tasks that the second solved at least once, and the first never. */
  readonly onlySecond: readonly string[]
}

export function compareSuccess(pairs: readonly Pair[]): SuccessComparison {
  const better = (one: keyof Pair, other: keyof Pair) => pairs.filter((pair) => share(pair[one]) > share(pair[other]))
  const [first, second] = [better("first", "second"), better("second", "first")]
  const once = pairs.every((pair) => pair.first.length === 1 && pair.second.length === 1)
  const kinds = [...new Set(pairs.flatMap((pair) => kindOf(pair) ?? []))].sort()
  return {
    ...compareShares(pairs),
    test: {
      name: once ? "McNemar" : "sign",
      ...{ first: first.length, second: second.length, p: mcnemarTest(first.length, second.length) },
    },
    kinds: Object.fromEntries(
      kinds.map((kind) => [kind, compareShares(pairs.filter((pair) => kindOf(pair) === kind))]),
    ),
    onlyFirst: first.filter((pair) => share(pair.second) === 0).map(keyOf),
    onlySecond: second.filter((pair) => share(pair.first) === 0).map(keyOf),
  }
}

/** Kind of a task from either evaluation. An episode that failed at its start may not have reported a kind. */
function kindOf({ first, second }: Pair): string | undefined {
  return first[0]!.kind ?? second[0]!.kind
}

function keyOf({ first }: Pair): string {
  return first[0]!.key
}

function compareShares(pairs: readonly Pair[]): MeasureComparison {
  const [first, second] = [pairs.map((pair) => pair.first), pairs.map((pair) => pair.second)]
  return {
    first: shareInterval(first),
    second: shareInterval(second),
    difference: pairedInterval(first.map(share), second.map(share)),
  }
}

function shareInterval(tasks: readonly TaskEpisodes[]): MeanInterval {
  const [low, high] = clusterInterval(tasks.map(countSolved), tasks[0]!.length)
  return { mean: mean(tasks.map(share)), low, high, count: tasks.length }
}

function share(episodes: TaskEpisodes): number {
  return countSolved(episodes) / episodes.length
}
