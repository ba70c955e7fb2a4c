import type { EvaluationReport, IterationReport } from "./report.ts"

/** Best evaluation of a run. */
export interface BestEvaluation {
  /** Number of completed iterations at the evaluation; 0 before the first. */
  readonly iteration: number
  /** Report of the evaluation. */
  readonly evaluation: EvaluationReport
  /** Checkpoint of the evaluated weights. Absent if these are the weights at the start of the run. */
  readonly directory?: string
}

/** Returns the best evaluation by success rate, then by mean return. Among equal ones the earliest. */
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
