// `gigpo/evaluation`: benchmarks with fixed tasks, comparisons with intervals, anchor coverage.

import "../check-node.mts"

export { type Benchmark, type OpenBenchmarkOptions, openBenchmark } from "../benchmark/benchmark.ts"
export { type Comparison, compareEvaluations, type MeasureComparison } from "../benchmark/compare.ts"
export type { SuccessComparison } from "../benchmark/compare-success.ts"
export { type CreateBenchmarkOptions, createBenchmark } from "../benchmark/create.ts"
export type { BenchmarkDefinition } from "../benchmark/definition.ts"
export type { EvaluationDifference } from "../benchmark/differences.ts"
export { type EvaluateBenchmarkSetup, evaluateBenchmark } from "../benchmark/evaluate.ts"
export {
  type BenchmarkDigests,
  type BenchmarkEvaluation,
  type EvaluatedEpisode,
  type EvaluationHeader,
  readEvaluation,
  writeEvaluation,
} from "../benchmark/evaluation-file.ts"
export { type ExportGamesOptions, exportGames } from "../benchmark/export-games.ts"
export { benchmarkNames, describeBenchmark } from "../benchmark/find.ts"
export { type MeanInterval, pairedInterval, tInterval } from "../benchmark/paired.ts"
export { type BenchmarkReport, type KindReport, reportBenchmark } from "../benchmark/report.ts"
export type { BenchmarkTask } from "../benchmark/tasks.ts"
export {
  type AnchorCount,
  type AnchorCoverage,
  type AnchorCoverageOptions,
  type AnchorFinding,
  anchorCoverage,
} from "../training/anchor-report.ts"
