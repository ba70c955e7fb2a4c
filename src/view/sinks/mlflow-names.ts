// What MLflow takes, as its own checks have it (mlflow/utils/validation.py).

export const mostMetrics = 1000
export const mostParams = 100
const longestName = 250
const longestParam = 6000

export interface Metric {
  readonly key: string
  /** JSON has no number for what is not finite: protobuf's names for them. */
  readonly value: number | "NaN" | "Infinity" | "-Infinity"
  /** Milliseconds since 1970. */
  readonly timestamp: number
  readonly step: number
}

export interface Param {
  readonly key: string
  readonly value: string
}

export function metricsOf(values: Readonly<Record<string, number>>, timestamp: number, step: number): Metric[] {
  return Object.entries(values).map(([name, value]) => ({
    key: nameFor(name),
    value: Number.isFinite(value) ? value : (String(value) as "NaN"),
    timestamp,
    step,
  }))
}

/** Of two settings whose names come to the same the later counts: MLflow refuses a parameter that has two values. */
export function paramsOf(settings: Readonly<Record<string, unknown>>): Param[] {
  const values = Object.entries(settings).map(([key, value]) => [nameFor(key), shortened(String(value))] as const)
  return [...new Map(values)].map(([key, value]) => ({ key, value }))
}

/** Letters, digits, spaces, `_`, `-`, `.`, and `/` between parts that a file system could name. */
function nameFor(name: string): string {
  const parts = name.replace(/[^\w\-. /]/g, "_").split("/")
  return parts
    .map((part) => (/^\.{0,2}$/.test(part) ? "_" : part))
    .join("/")
    .slice(0, longestName)
    .replace(/\/$/, "_")
}

function shortened(value: string): string {
  if (value.length <= longestParam) return value
  // Never half of a pair, which is no text.
  return `${value.slice(0, longestParam - 1).replace(/[\ud800-\udbff]$/, "")}…`
}
