import type { IterationReport } from "../../runs/report.ts"

/**
 * Numbers of a report by name. Those of an evaluation have the prefix "evaluation/" and include the bounds of the success interval.
 * Non-finite numbers, which JSON cannot represent, are omitted.
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
    // Without a reported success there is no success rate.
    ...(metrics.success !== undefined && {
      "evaluation/success": success,
      "evaluation/success-low": low,
      "evaluation/success-high": high,
    }),
  }
}
