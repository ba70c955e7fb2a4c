import { type Curves, lastKnown, nearestKnown } from "./curves.ts"
import { formatMetric } from "./metrics.ts"

/**
 * Value of a metric with its confidence interval, "43.0 % (35.2 % to 52.1 %)"; "not finite" for NaN and infinite values, a dash if there is no value.
 *
 * @param place - index in `along`. Default: the last value
 */
export function valueInWords(name: string, curves: Curves, run: number, place?: number): string {
  const { values, nonFinite, intervals } = curves
  const column = values[run]!
  const known = place === undefined ? lastKnown(column) : nearestKnown(column, place)
  const isBroken = place === undefined ? Math.max(...nonFinite[run]!) > (known ?? -1) : nonFinite[run]!.has(place)
  if (isBroken) return "not finite"
  if (known === undefined) return "–"
  const interval = intervals?.[run]
  const [low, high] = [interval?.low[known], interval?.high[known]]
  const within =
    typeof low === "number" && typeof high === "number"
      ? ` (${formatMetric(name, low)} to ${formatMetric(name, high)})`
      : ""
  return formatMetric(name, column[known]!) + within
}
