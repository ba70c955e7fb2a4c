import type { EvaluationReport } from "../runs/report.ts"
import { summarize } from "../training/summary.ts"
import { byTask, countSolved } from "./by-task.ts"
import { clusterInterval, passAtK } from "./clusters.ts"
import { type BenchmarkDigests, type BenchmarkEvaluation, checkEvaluation } from "./evaluation-file.ts"

/** Report of a benchmark evaluation. The interval of the success rate accounts for repeats of tasks. */
export interface BenchmarkReport extends EvaluationReport {
  /** Name of the benchmark with its version. */
  readonly benchmark: string
  /** Digests of the benchmark. */
  readonly digests: BenchmarkDigests
  /** Number of tasks. */
  readonly tasks: number
  /** Episodes per task. */
  readonly repeats: number
  /** Probability that at least one of k episodes succeeds, for k = 1 … repeats. */
  readonly passAtK: readonly number[]
  /** Results by kind of task, where the environment reports kinds. */
  readonly kinds: readonly KindReport[]
}

/** Results of one kind of tasks of a benchmark. */
export interface KindReport {
  /** Kind of task, as the environment names it. */
  readonly kind: string
  /** Number of tasks of the kind. */
  readonly tasks: number
  /** Success rate: share of all their episodes with `success` = 1. */
  readonly success: number
  /** 95 % interval of the success rate. */
  readonly successInterval: readonly [number, number]
}

/** Returns the report of a benchmark evaluation. Throws `BAD_ARGUMENT` for an invalid evaluation. */
export function reportBenchmark(evaluation: BenchmarkEvaluation): BenchmarkReport {
  checkEvaluation("BAD_ARGUMENT", "reportBenchmark", evaluation)
  const { header, episodes } = evaluation
  const { benchmark, digests, tasks, repeats } = header
  const { metrics, ...summary } = summarize(episodes)
  const kinds = [...new Set(episodes.flatMap(({ kind }) => kind ?? []))].sort()
  const others = Object.entries(metrics).filter(([name]) => !kinds.some((kind) => name === `success/${kind}`))
  const all = byTask(episodes, repeats)
  const solved = all.map(countSolved)
  return {
    benchmark,
    digests,
    tasks,
    repeats,
    ...summary,
    successInterval: clusterInterval(solved, repeats),
    passAtK: passAtK(solved, repeats),
    metrics: Object.fromEntries(others),
    kinds: kinds.map((kind) => {
      const own = all.filter(([first]) => first!.kind === kind).map(countSolved)
      const total = own.reduce((sum, count) => sum + count, 0)
      const [success, successInterval] = [total / (own.length * repeats), clusterInterval(own, repeats)]
      return { kind, tasks: own.length, success, successInterval }
    }),
  }
}
