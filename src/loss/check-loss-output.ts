import { isFloat32Array, isPromise } from "node:util/types"
import { checkMetrics, checkOutcome, refusalsOf } from "../options/outcome.ts"
import type { PartKind } from "../options/own.ts"
import { locate } from "./locate.ts"
import type { LossColumn, LossInput, LossOutput } from "./token-loss.ts"

const needs = { old: true, reference: true, entropy: true, teacher: true, hellinger: true } satisfies Record<
  LossColumn,
  true
>

/** Description of custom losses for checks and messages. */
export const lossKind: PartKind = {
  what: "loss",
  call: "evaluate",
  takes: "(input)",
  gives: "output",
  needs: Object.keys(needs),
  also: ["native"],
}

const keys = { loss: true, gradient: true, entropyGradient: true, topGradient: true, metrics: true } satisfies Record<
  keyof LossOutput,
  true
>

/**
 * Checks the output of a custom loss for unknown keys, wrong types and lengths, and numbers that are not finite.
 *
 * @throws GigpoError `BAD_ARGUMENT` or `NON_FINITE`, with the name of the loss and the position of the value.
 */
export function checkLossOutput(output: LossOutput, input: LossInput, name: string): LossOutput {
  const refusals = refusalsOf(lossKind, name)
  const { bad, nonFinite } = refusals
  if (isPromise(output)) {
    output.catch(() => {}) // avoids an unhandled rejection: the promise is not awaited
    throw bad("a promise instead of output; evaluate must not be async")
  }
  checkOutcome(output, lossKind, keys, "{ loss, gradient }", refusals)
  const { tokens, teacherTop, segmentOffsets } = input
  if (typeof output.loss !== "number") throw bad(`a loss of type ${typeof output.loss}; return a number`)
  if (!Number.isFinite(output.loss)) throw nonFinite(`the loss ${output.loss}; return a finite number`)
  if (output.topGradient && !teacherTop)
    throw bad("a topGradient without a teacherTop; set teacherTop to receive the most likely tokens of the teacher")
  for (const [column, article, count] of [
    ["gradient", "a", 1],
    ["entropyGradient", "an", 1],
    ["topGradient", "a", teacherTop?.count ?? 1],
  ] as const) {
    const values = output[column]
    if (values === undefined && column !== "gradient") continue
    if (!isFloat32Array(values) || values.length !== tokens * count)
      throw bad(
        `${article} ${column} that is not a Float32Array of length ${tokens} (sampled tokens)${count > 1 ? ` × ${count}` : ""}`,
      )
    const wrong = values.findIndex((value) => !Number.isFinite(value))
    if (wrong >= 0) {
      const [segment, token] = locate(Math.floor(wrong / count), segmentOffsets)
      throw nonFinite(
        `${article} ${column} of ${values[wrong]} for token ${token} of span ${segment}; return finite numbers`,
      )
    }
  }
  checkMetrics(output.metrics, refusals)
  return output
}
