import { isDeeper } from "../json/depth.ts"
import { isObject } from "../options/read.ts"
import type { IterationReport } from "./report.ts"

// Checks of lines of metrics.jsonl. The run may be another person's, so its log is not trusted.

type Check = (value: unknown) => boolean

/** JSON writes null for a number that is not finite. */
const isMeasure: Check = (value) => typeof value === "number" || value === null
const isMetrics: Check = (value) => isObject(value) && Object.values(value).every(isMeasure)
const isText: Check = (value) => typeof value === "string"

const reportChecks: Readonly<Record<string, Check>> = {
  iteration: Number.isSafeInteger,
  metrics: isMetrics,
}
const optionalChecks: Readonly<Record<string, Check>> = {
  time: isText,
  failures: Array.isArray,
  evaluation: isEvaluation,
  warnings: (value) => Array.isArray(value) && value.every(isText),
  stopped: isText,
  resumed: (value) => value === true,
}

export function isReport(value: unknown): value is IterationReport {
  return (
    isObject(value) &&
    Object.entries(reportChecks).every(([key, fits]) => fits(value[key])) &&
    Object.entries(optionalChecks).every(([key, fits]) => value[key] === undefined || fits(value[key])) &&
    !isDeeper(value, deepest)
  )
}

/** Maximum depth of a report: its own levels, and some for additions of observers. */
const deepest = 20

function isEvaluation(value: unknown): boolean {
  if (!isObject(value)) return false
  const { successInterval: interval, metrics, success, meanReturn } = value
  return (
    Array.isArray(interval) &&
    interval.length === 2 &&
    [...interval, success, meanReturn].every(isMeasure) &&
    isMetrics(metrics)
  )
}
