import type { EvaluationReport, IterationReport } from "./report.ts"

/** The evaluation that no other of a run is better than. */
export interface BestEvaluation {
  /** Completed iterations; 0 before the first. */
  readonly iteration: number
  readonly evaluation: EvaluationReport
  /** The checkpoint of these weights; absent where they are those that the run began with. */
  readonly directory?: string
}

/** The best evaluation by success, then by mean return; of equals the earliest. */
export function bestOf(reports: readonly IterationReport[]): BestEvaluation | undefined {
  return reports.reduce<BestEvaluation | undefined>(
    (best, { iteration, evaluation }) =>
      evaluation && (!best || isBetter(evaluation, best.evaluation)) ? { iteration, evaluation } : best,
    undefined,
  )
}

function isBetter(one: EvaluationReport, other: EvaluationReport): boolean {
  return one.success === other.success ? one.meanReturn > other.meanReturn : one.success > other.success
}
