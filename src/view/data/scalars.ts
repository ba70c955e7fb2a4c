import type { IterationReport } from "../../runs/report.ts"

/**
 * Numbers of a report by name. Those of an evaluation have the prefix "evaluation/" and include the bounds of the success interval.
 * Non-finite numbers, which JSON cannot represent, are omitted.
 */
export function scalarsOf(report: IterationReport): Record<string, number> {
  const isNumber = (entry: [string, unknown]): entry is [string, number] => typeof entry[1] === "number"
  return Object.fromEntries(Object.entries(valuesOf(report)).filter(isNumber))
}

/** Names of the numbers of a report that are not finite. JSON has null for them, or a number such as 1e999. */
export function nonFiniteOf(report: IterationReport): string[] {
  const isNonFinite = (value: unknown) => value === null || (typeof value === "number" && !Number.isFinite(value))
  return Object.entries(valuesOf(report)).flatMap(([name, value]) => (isNonFinite(value) ? [name] : []))
}

function valuesOf({ metrics, evaluation }: IterationReport): Record<string, number | null> {
  return { ...metrics, ...(evaluation && evaluationScalars(evaluation)) }
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
