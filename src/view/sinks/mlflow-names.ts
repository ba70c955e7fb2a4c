// Limits of MLflow (mlflow/utils/validation.py).

export const mostMetrics = 1000
export const mostParams = 100
const longestName = 250
const longestParam = 6000

export interface Metric {
  readonly key: string
  /** Value; non-finite numbers have protobuf's JSON names. */
  readonly value: number | "NaN" | "Infinity" | "-Infinity"
  /** Time in milliseconds since 1970. */
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

/** Parameters of settings. Of settings with the same MLflow name, the last is used, because MLflow rejects two values. */
export function paramsOf(settings: Readonly<Record<string, unknown>>): Param[] {
  const values = Object.entries(settings).map(([key, value]) => [nameFor(key), shortened(String(value))] as const)
  return [...new Map(values)].map(([key, value]) => ({ key, value }))
}

/** Valid MLflow name: letters, digits, spaces, `_`, `-`, `.`, and `/` between parts that are valid file names. */
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
  // A surrogate pair must not be split.
  return `${value.slice(0, longestParam - 1).replace(/[\ud800-\udbff]$/, "")}…`
}
