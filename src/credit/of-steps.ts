import { field } from "../options/field.ts"
import type { OptionField } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import type { Batch, EstimatorContext, EstimatorStep } from "./estimator.ts"

// Data of steps that estimators read in addition to rewards. An option is the name of a metric of the steps or, in programs, a function.
// Metrics come from the environment or from a hook of the rollout (`score`).

/** One number per step: name of a metric, or a function that returns the numbers of a batch, [steps]. NaN for a step without a number. */
export type StepNumbers = string | ((batch: Batch, context: EstimatorContext) => Float64Array | Promise<Float64Array>)

/** Grouping key of a step: name of a metric, or a function of the step. undefined for a step without a group. */
export type StepKey = string | ((step: EstimatorStep, row: number, batch: Batch) => string | number | undefined)

export function stepNumbers<F extends StepNumbers | undefined, const Help extends string>(
  fallback: F,
  help: Help,
  otherwise?: string,
): OptionField<StepNumbers | Extract<F, undefined>, Help> {
  return nameOrFunction<StepNumbers, F, Help>(fallback, help, "(batch, context) => numbers", otherwise)
}

export function stepKey<F extends StepKey | undefined, const Help extends string>(
  fallback: F,
  help: Help,
  otherwise?: string,
): OptionField<StepKey | Extract<F, undefined>, Help> {
  return nameOrFunction<StepKey, F, Help>(fallback, help, "(step, row, batch) => key", otherwise)
}

/**
 * Returns the numbers of all steps, [steps].
 *
 * @throws BAD_ARGUMENT where a function returns a wrong number of values or infinite ones, or no step has the metric
 */
export async function numbersOf(
  given: StepNumbers,
  batch: Batch,
  context: EstimatorContext,
  who: string,
): Promise<Float64Array> {
  if (typeof given === "string") return metricOf(batch, given, who, Number.NaN)
  const found = await given(batch, context)
  const isColumn = found instanceof Float64Array && found.length === batch.length
  if (isColumn && found.every((value) => Number.isFinite(value) || Number.isNaN(value))) return found
  throw new GigpoError(
    "BAD_ARGUMENT",
    `${who}: its function of the batch must give a Float64Array of ${batch.length} steps, each finite, or NaN for a step without a value.`,
  )
}

/** Dense ids of equal keys within each task, [steps]; -1 for a step without a key. */
export function groupByKey(given: StepKey, batch: Batch, who: string): Int32Array {
  const known = new Map<number, Map<string | number, number>>() // ids of keys, by task
  const ids = new Int32Array(batch.length).fill(-1)
  let count = 0
  for (const [row, key] of keysOf(given, batch, who).entries()) {
    if (key === undefined) continue
    const task = batch.task[row]!
    const ofTask = known.get(task) ?? new Map<string | number, number>()
    known.set(task, ofTask)
    const id = ofTask.get(key) ?? count++
    ofTask.set(key, id)
    ids[row] = id
  }
  return ids
}

/** Key of each step, [steps]. */
export function keysOf(given: StepKey, batch: Batch, who: string): (string | number | undefined)[] {
  if (typeof given === "string")
    return Array.from(metricOf(batch, given, who, Number.NaN), (value) => (Number.isNaN(value) ? undefined : value))
  const { steps } = batch
  if (steps === undefined && batch.length > 0)
    throw new GigpoError("BAD_ARGUMENT", `${who} needs completions and actions; give each step its record.`)
  return (steps ?? []).map((step, row) => {
    const key = given(step, row, batch)
    if (key === undefined || typeof key === "string" || Number.isFinite(key)) return key
    throw new GigpoError("BAD_ARGUMENT", `${who}: the key of step ${row} is ${String(key)}; give a string or a number.`)
  })
}

/** Metric of every step, [steps]; `missing` where a step does not have the metric. */
export function metricOf(
  { steps = [], length }: Batch,
  name: string,
  who: string,
  missing: number,
  advice = "Use one of them, or report the metric from the environment or the hook `score`.",
): Float64Array {
  const values = new Float64Array(length).fill(missing)
  for (const [row, { metrics }] of steps.entries()) values[row] = metrics?.[name] ?? missing
  if (steps.some(({ metrics }) => metrics?.[name] !== undefined) || length === 0) return values
  const known = [...new Set(steps.flatMap(({ metrics = {} }) => Object.keys(metrics)))].sort()
  const names = known.length === 0 ? "none has any" : `there are ${known.map((one) => JSON.stringify(one)).join(", ")}`
  throw new GigpoError("BAD_ARGUMENT", `${who}: no step has the metric ${JSON.stringify(name)}; ${names}. ${advice}`)
}

function nameOrFunction<T, F extends T | undefined, const Help extends string>(
  fallback: F,
  help: Help,
  signature: string,
  otherwise: string | undefined,
): OptionField<T | Extract<F, undefined>, Help> {
  const problem = (value: unknown) =>
    typeof value === "function" || (typeof value === "string" && value.trim() !== "")
      ? undefined
      : `must be the name of a metric of steps, or a function ${signature}`
  return field<T | Extract<F, undefined>, Help>(fallback as Extract<F, undefined>, help, problem, {
    ...(otherwise !== undefined && { defaultText: otherwise }),
  })
}
