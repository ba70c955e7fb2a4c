import { GigpoError } from "../errors.ts"
import type { LossInput, LossNeed, LossOutput, TokenLoss } from "./token-loss.ts"

const needs: readonly LossNeed[] = ["old", "reference", "entropy"]

/**
 * What was handed in, as a loss: one already, or a function `(input) => output`, which goes by its own name.
 *
 * @throws GigpoError `BAD_ARGUMENT` for anything else.
 */
export function asTokenLoss(value: TokenLoss | ((input: LossInput) => LossOutput)): TokenLoss {
  if (typeof value === "function") return { name: value.name || "loss", evaluate: value }
  if (typeof value !== "object" || value === null)
    throw bad(`The loss is of type ${typeof value}; give a token loss, or a function (input) => output`)
  const { name, evaluate, native, state, restore } = value
  if (typeof name !== "string" || name === "") throw bad("The loss has no name; give it one, which its messages use")
  if (typeof evaluate !== "function") throw bad(`The loss ${name} has no function evaluate(input)`)
  if (native !== undefined && typeof native !== "function")
    throw bad(`The loss ${name} has a native that is no function`)
  if ((typeof state === "function") !== (typeof restore === "function"))
    throw bad(`The loss ${name} has one of state and restore; what remembers something needs both`)
  const unknown = value.needs?.find((need) => !needs.includes(need))
  if (unknown !== undefined)
    throw bad(`The loss ${name} needs ${JSON.stringify(unknown)}; known are ${needs.map((n) => `"${n}"`).join(", ")}`)
  return value
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
