import { isFloat32Array } from "node:util/types"
import { GigpoError } from "../errors.ts"
import { locate } from "./locate.ts"
import type { LossInput, LossOutput } from "./token-loss.ts"

/**
 * Refuses what a loss of somebody else's may give: wrong types and lengths, numbers that are not finite.
 *
 * @throws GigpoError `BAD_ARGUMENT`, or `NON_FINITE`, with the loss's name and where it is.
 */
export function checkLossOutput(output: LossOutput, input: LossInput, name: string): LossOutput {
  const bad = (what: string) => new GigpoError("BAD_ARGUMENT", `The loss ${name} gave ${what}.`)
  const nonFinite = (what: string) => new GigpoError("NON_FINITE", `The loss ${name} gave ${what}.`)
  if (typeof output !== "object" || output === null) throw bad(`${typeof output} instead of { loss, gradient }`)
  if (typeof output.loss !== "number") throw bad(`a loss of type ${typeof output.loss}; give a number`)
  if (!Number.isFinite(output.loss)) throw nonFinite(`the loss ${output.loss}; give a finite number`)
  for (const column of ["gradient", "entropyGradient"] as const) {
    const values = output[column]
    if (values === undefined && column === "entropyGradient") continue
    if (!isFloat32Array(values) || values.length !== input.tokens)
      throw bad(`a ${column} that is no Float32Array of its ${input.tokens} tokens`)
    const wrong = values.findIndex((value) => !Number.isFinite(value))
    if (wrong >= 0) {
      const [span, token] = locate(wrong, input.spanOffsets)
      throw nonFinite(`a ${column} of ${values[wrong]} for token ${token} of span ${span}; give finite numbers`)
    }
  }
  for (const [metric, value] of Object.entries(output.metrics ?? {})) {
    if (!Number.isFinite(value))
      throw nonFinite(`the metric ${JSON.stringify(metric)} as ${value}; give a finite number`)
  }
  return output
}
