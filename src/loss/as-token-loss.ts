import { thrownBy } from "../options/outcome.ts"
import { checkPart, partProblem } from "../options/own.ts"
import { GigpoError } from "../util/errors.ts"
import { checkLossOutput, lossKind } from "./check-loss-output.ts"
import type { LossInput, LossOutput, TokenLoss } from "./token-loss.ts"

/** Predicate of a message about an invalid loss ("has no name"). undefined for a valid loss. */
export function lossProblem(value: unknown): string | undefined {
  const { teacherTop } = (value ?? {}) as Partial<TokenLoss>
  const isCount = teacherTop === undefined || (Number.isSafeInteger(teacherTop) && teacherTop >= 0)
  return partProblem(value, lossKind) ?? (isCount ? undefined : "has a teacherTop that is not an integer of at least 0")
}

/**
 * Returns a loss for a loss object or a function `(input) => output`. The loss of a function has the name of the function.
 *
 * @throws GigpoError `BAD_ARGUMENT` for any other value.
 */
export function asTokenLoss(value: TokenLoss | ((input: LossInput) => LossOutput)): TokenLoss {
  checkPart(value, lossKind)
  const problem = lossProblem(value)
  if (problem !== undefined) throw new GigpoError("BAD_ARGUMENT", `The loss ${value.name} ${problem}.`)
  return typeof value === "function" ? { name: value.name || "loss", evaluate: value } : value
}

/**
 * Evaluates a loss and checks its output.
 *
 * @throws GigpoError `BAD_ARGUMENT` if the loss throws or its output does not fit the input, `NON_FINITE` for numbers that are not
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
