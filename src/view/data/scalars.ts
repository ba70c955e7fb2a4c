import type { IterationReport } from "../../runs/report.ts"

/**
 * The numbers of a report by name, for whoever knows no more than names and numbers: those of the evaluation as "evaluation/…", with
 * the ends of the interval of its success. What is no number (JSON has none for NaN) is left out.
 */
export function scalarsOf({ metrics, evaluation }: IterationReport): Record<string, number> {
  const all = { ...metrics, ...(evaluation && evaluationScalars(evaluation)) }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => typeof value === "number"))
}

function evaluationScalars({
  metrics,
  successInterval: [low, high],
  ...told
}: NonNullable<IterationReport["evaluation"]>): Record<string, number> {
  const own = Object.entries(metrics).map(([name, value]) => [`evaluation/${name}`, value])
  const { success, episodes, failed, meanReturn, meanSteps, valid } = told
  return {
    ...Object.fromEntries(own),
    "evaluation/episodes": episodes,
    "evaluation/failed": failed,
    "evaluation/return": meanReturn,
    "evaluation/steps": meanSteps,
    ...(valid !== undefined && { "evaluation/valid": valid }),
    // Of a success that nobody told there is nothing to say.
    ...(metrics.success !== undefined && {
      "evaluation/success": success,
      "evaluation/success-low": low,
      "evaluation/success-high": high,
    }),
  }
}
