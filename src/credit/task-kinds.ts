import { boolean, integer, number, string } from "../options/field.ts"
import type { ResolvedOf } from "../options/table.ts"
import { denseIds } from "../util/dense-ids.ts"
import type { Batch } from "./estimator.ts"
import { keysOf, metricOf, type StepKey, stepKey } from "./of-steps.ts"
import { groupStatistics } from "./statistics.ts"
import { stepsAfter } from "./turns.ts"

/** Option for the kind of task of a step, for estimators that treat kinds separately. */
export const kindField = stepKey(
  undefined,
  "Kind of the task of a step: the name of a metric of steps, or in programs a function of a step.",
  "all tasks have the same kind",
)

/** Name of the kind of each step's episode, [steps]: that of a metric `success/<kind>` of its steps, or "all" without such a metric. */
export function namedKinds({ episode, steps = [] }: Batch): string[] {
  const kinds = new Map<number, string>()
  for (const [row, { metrics = {} }] of steps.entries()) {
    const name = Object.keys(metrics).find((metric) => metric.startsWith("success/"))
    if (name !== undefined) kinds.set(episode[row]!, name)
  }
  return Array.from(episode, (one) => kinds.get(one) ?? "all")
}

/** Kind of each step as dense ids over all tasks, [steps]. */
export function kindsOf(kind: StepKey | undefined, batch: Batch, who: string): Int32Array {
  if (kind === undefined) return new Int32Array(batch.length)
  return denseIds(keysOf(kind, batch, who).map((key) => `${typeof key} ${key}`))
}

/** Options of the normalization of advantages per kind of task. */
export const kindFields = {
  kind: { ...kindField, defaultText: "advantages are not changed" },
  minSteps: integer(
    10,
    "Minimum number of steps of a kind that is normalized by its own mean and standard deviation; others use those of all steps.",
    {
      min: 2,
    },
  ),
  minStd: number(0.1, "Standard deviation below which the advantages of a kind are only centered.", { min: 0 }),
  weighKinds: boolean(
    false,
    "Whether kinds with a low success rate s have a larger weight: ((1 - s) / 0.15)², from 0.3 to 3.",
  ),
  success: string("success", "Metric that is 1 at the last step of a successful episode."),
}

/**
 * Returns advantages that are normalized separately for each kind of task.
 *
 * @param epsilon constant added to standard deviations
 */
export function renormalizeByKind(
  advantages: Float64Array,
  batch: Batch,
  options: ResolvedOf<typeof kindFields>,
  epsilon: number,
  who: string,
): Float64Array {
  const { kind, minSteps, minStd, weighKinds, success } = options
  if (kind === undefined) return advantages
  const kinds = kindsOf(kind, batch, who)
  const { size, mean, std } = groupStatistics(advantages, kinds)
  const all = groupStatistics(advantages, new Int32Array(batch.length))
  const weights = weighKinds ? weightsOf(metricOf(batch, success, who, 0), batch.episode, kinds) : undefined
  return advantages.map((value, row) => {
    const own = kinds[row]!
    const isSmall = size[own]! < minSteps
    const [middle, deviation] = isSmall ? [all.mean[0]!, all.std[0]!] : [mean[own]!, std[own]!]
    const width = isSmall || deviation >= minStd ? deviation + epsilon : 1
    return deviation === 0 ? 0 : ((weights?.[own] ?? 1) * (value - middle)) / width
  })
}

/** Weight of each kind, [kinds]. */
function weightsOf(success: Float64Array, episodes: Int32Array, kinds: Int32Array): Float64Array {
  const after = stepsAfter(episodes)
  const isLast = Uint8Array.from(after, (row) => (row < 0 ? 1 : 0))
  const { mean } = groupStatistics(
    success.map((value) => (value === 1 ? 1 : 0)),
    kinds,
    isLast,
  )
  return mean.map((share) => Math.min(Math.max(((1 - share) / 0.15) ** 2, 0.3), 3))
}
