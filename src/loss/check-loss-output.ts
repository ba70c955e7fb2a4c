import { isFloat32Array, isPromise } from "node:util/types"
import { checkMetrics, checkOutcome, refusalsOf } from "../options/outcome.ts"
import type { PartKind } from "../options/own.ts"
import { locate } from "./locate.ts"
import type { LossInput, LossNeed, LossOutput } from "./token-loss.ts"

const needs = { old: true, reference: true, entropy: true, teacher: true, hellinger: true } satisfies Record<
  LossNeed,
  true
>

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
 * Refuses what a loss of somebody else's may give: unknown keys, wrong types and lengths, numbers that are not finite.
 *
 * @throws GigpoError `BAD_ARGUMENT`, or `NON_FINITE`, with the loss's name and where it is.
 */
export function checkLossOutput(output: LossOutput, input: LossInput, name: string): LossOutput {
  const refusals = refusalsOf(lossKind, name)
  const { bad, nonFinite } = refusals
  if (isPromise(output)) {
    output.catch(() => {}) // what it comes to, nobody waits for
    throw bad("a promise instead of output; evaluate must not be async")
  }
  checkOutcome(output, lossKind, keys, "{ loss, gradient }", refusals)
  const { tokens, teacherTop, spanOffsets } = input
  if (typeof output.loss !== "number") throw bad(`a loss of type ${typeof output.loss}; give a number`)
  if (!Number.isFinite(output.loss)) throw nonFinite(`the loss ${output.loss}; give a finite number`)
  if (output.topGradient && !teacherTop)
    throw bad("a topGradient without having been told of a teacher's most likely tokens; give it a teacherTop")
  for (const [column, article, count] of [
    ["gradient", "a", 1],
    ["entropyGradient", "an", 1],
    ["topGradient", "a", teacherTop?.count ?? 1],
  ] as const) {
    const values = output[column]
    if (values === undefined && column !== "gradient") continue
    if (!isFloat32Array(values) || values.length !== tokens * count)
      throw bad(`${article} ${column} that is no Float32Array of its ${tokens} tokens${count > 1 ? ` × ${count}` : ""}`)
    const wrong = values.findIndex((value) => !Number.isFinite(value))
    if (wrong >= 0) {
      const [span, token] = locate(Math.floor(wrong / count), spanOffsets)
      throw nonFinite(
        `${article} ${column} of ${values[wrong]} for token ${token} of span ${span}; give finite numbers`,
      )
    }
  }
  checkMetrics(output.metrics, refusals)
  return output
}
