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
  const values = valuesOf(report)
  return Object.keys(values).filter((name) => isNonFinite(values[name]))
}

/** Numbers of a report by name. Null and infinite values are those that were not finite; values of other types are none. */
export function valuesOf({ metrics, evaluation }: IterationReport): Readonly<Record<string, number | null>> {
  return evaluation ? { ...metrics, ...evaluationScalars(evaluation) } : metrics
}

export function isNonFinite(value: unknown): boolean {
  return value === null || (typeof value === "number" && !Number.isFinite(value))
}

function evaluationScalars({
  metrics,
  successInterval: [low, high],
  ...told
}: NonNullable<IterationReport["evaluation"]>): Record<string, number> {
  const own = Object.entries(metrics).map(([name, value]) => [`evaluation/${name}`, value])
  const { success, episodes, failed, excluded, meanReturn, meanSteps, valid } = told
  return {
    ...Object.fromEntries(own),
    "evaluation/episodes": episodes,
    "evaluation/failed": failed,
    ...(excluded !== undefined && { "evaluation/excluded": excluded }),
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
