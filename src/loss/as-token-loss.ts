import { thrownBy } from "../options/outcome.ts"
import { checkPart, partProblem } from "../options/own.ts"
import { GigpoError } from "../util/errors.ts"
import { checkLossOutput, lossKind } from "./check-loss-output.ts"
import type { LossInput, LossOutput, TokenLoss } from "./token-loss.ts"

/** What is wrong with a loss, to be said after what it is called; undefined where it is one. */
export function lossProblem(value: unknown): string | undefined {
  const { teacherTop } = (value ?? {}) as Partial<TokenLoss>
  const isCount = teacherTop === undefined || (Number.isSafeInteger(teacherTop) && teacherTop >= 0)
  return partProblem(value, lossKind) ?? (isCount ? undefined : "has a teacherTop that is no whole number of tokens")
}

/**
 * What was handed in, as a loss: one already, or a function `(input) => output`, which goes by its own name.
 *
 * @throws GigpoError `BAD_ARGUMENT` for anything else.
 */
export function asTokenLoss(value: TokenLoss | ((input: LossInput) => LossOutput)): TokenLoss {
  checkPart(value, lossKind)
  const problem = lossProblem(value)
  if (problem !== undefined) throw new GigpoError("BAD_ARGUMENT", `The loss ${value.name} ${problem}.`)
  return typeof value === "function" ? { name: value.name || "loss", evaluate: value } : value
}

/**
 * What a loss comes to, checked.
 *
 * @throws GigpoError `BAD_ARGUMENT` where it throws, or gives what does not fit the input; `NON_FINITE` for numbers that are not
 * finite.
 */
export function evaluateLoss(loss: TokenLoss, input: LossInput): LossOutput {
  let output: LossOutput
  try {
    output = loss.evaluate(input)
  } catch (cause) {
    throw thrownBy(lossKind, loss.name, cause)
  }
  return checkLossOutput(output, input, loss.name)
}
