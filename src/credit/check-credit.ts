import { isFloat32Array, isFloat64Array, isInt32Array, isUint8Array } from "node:util/types"
import { checkMetrics, checkOutcome, refusalsOf } from "../options/outcome.ts"
import type { PartKind } from "../options/own.ts"
import { checkExtraRows, checkReplay } from "./check-extra-rows.ts"
import type { Batch, Credit, EstimatorStatistic } from "./estimator.ts"

const needs = {
  old: true,
  reference: true,
  teacher: true,
  entropy: true,
  squares: true,
  value: true,
  greedy: true,
  text: true,
} satisfies Record<EstimatorStatistic, true>

export const estimatorKind: PartKind = {
  what: "estimator",
  call: "estimate",
  takes: "(batch, context)",
  gives: "credit",
  needs: Object.keys(needs),
}

const keys = {
  advantages: true,
  skip: true,
  returns: true,
  weights: true,
  clipScale: true,
  extraSequences: true,
  replay: true,
  metrics: true,
  details: true,
} satisfies Record<keyof Credit, true>

/**
 * Checks that the result of an estimator fits its batch: known keys, types, lengths and finite numbers. Values of skipped steps are not
 * checked.
 *
 * @throws BAD_ARGUMENT, or NON_FINITE, with the name of the estimator and the step
 */
export function checkCredit<C extends Credit>(credit: C, batch: Batch, name: string): C {
  const refusals = refusalsOf(estimatorKind, name)
  const { bad, nonFinite } = refusals
  const steps = batch.length
  checkOutcome(credit, estimatorKind, keys, "{ advantages }", refusals)
  const { advantages, skip, clipScale, details = {} } = credit

  if (skip !== undefined) {
    if (!isUint8Array(skip) || skip.length !== steps) throw bad(`skip that is not a Uint8Array of ${steps} steps`)
    const wrong = skip.findIndex((value) => value > 1)
    if (wrong >= 0) throw bad(`skip of ${skip[wrong]} for step ${wrong}; use 1 for a step that is left out, else 0`)
  }
  const isLearned = (step: number) => skip?.[step] !== 1

  const checkPerStep = (values: Float64Array, what: string) => {
    if (values.length !== steps) throw bad(`${values.length} ${what} for ${steps} steps; return one per step`)
    const wrong = values.findIndex((value, step) => !Number.isFinite(value) && isLearned(step))
    if (wrong >= 0) throw nonFinite(`${what} of ${values[wrong]} for step ${wrong}; give finite numbers`)
  }
  const checkPerToken = (values: readonly Float32Array[], what: string) => {
    if (!Array.isArray(values)) throw bad(`${what} that are not a list of Float32Array, one per step`)
    if (values.length !== steps) throw bad(`${what} of ${values.length} steps, not of ${steps}`)
    for (const [step, tokens] of values.entries()) {
      if (!isLearned(step)) continue
      if (!isFloat32Array(tokens) || tokens.length !== batch.lengths[step])
        throw bad(`${what} of step ${step} that are not a Float32Array of its ${batch.lengths[step]} tokens`)
      const wrong = tokens.findIndex((value) => !Number.isFinite(value))
      if (wrong >= 0)
        throw nonFinite(`${what} of ${tokens[wrong]} for token ${wrong} of step ${step}; give finite numbers`)
    }
  }

  if (isFloat64Array(advantages)) checkPerStep(advantages, "advantages")
  else if (Array.isArray(advantages)) checkPerToken(advantages, "advantages")
  else throw bad("advantages that are neither a Float64Array [steps] nor a list of Float32Array [steps][tokens]")
  if (credit.returns !== undefined) checkPerToken(credit.returns, "returns")
  if (credit.weights !== undefined) checkPerToken(credit.weights, "weights")
  if (clipScale !== undefined) {
    if (!isFloat64Array(clipScale)) throw bad("clipScale that is not a Float64Array")
    checkPerStep(clipScale, "clipScale")
    const wrong = clipScale.findIndex((scale, step) => scale < 0 && isLearned(step))
    if (wrong >= 0) throw bad(`a clipScale of ${clipScale[wrong]} for step ${wrong}; it must be at least 0`)
  }
  checkExtraRows(credit.extraSequences, refusals)
  checkReplay(credit.replay, refusals)
  checkMetrics(credit.metrics, refusals)
  for (const [detail, values] of Object.entries(details)) {
    if (!(isFloat64Array(values) || isInt32Array(values)) || values.length !== steps)
      throw bad(`the detail ${JSON.stringify(detail)} that is not a Float64Array or Int32Array of ${steps} steps`)
  }
  return credit
}
