import { GigpoError } from "../errors.ts"
import type { Batch, Credit, Estimator, EstimatorContext, Need } from "./estimator.ts"

const needs: readonly Need[] = ["old", "reference", "entropy", "value"]

/**
 * What was handed in, as an estimator: one already, or a function `(batch, context) => credit`, which goes by its own name.
 *
 * @throws BAD_ARGUMENT for anything else
 */
export function asEstimator(value: Estimator | Estimator["estimate"]): Estimator {
  if (typeof value === "function") return { name: value.name || "estimator", estimate: value }
  if (typeof value !== "object" || value === null)
    throw bad(`The estimator is of type ${typeof value}; give an estimator, or a function (batch, context) => credit.`)
  const { name, estimate, state, restore } = value
  if (typeof name !== "string" || name === "")
    throw bad("The estimator has no name; give it one, which its messages use.")
  if (typeof estimate !== "function") throw bad(`The estimator ${name} has no function estimate(batch, context).`)
  if ((typeof state === "function") !== (typeof restore === "function"))
    throw bad(`The estimator ${name} has one of state and restore; what remembers something needs both.`)
  const unknown = value.needs?.find((need) => !needs.includes(need))
  if (unknown !== undefined)
    throw bad(
      `The estimator ${name} needs ${JSON.stringify(unknown)}; known are ${needs.map((n) => `"${n}"`).join(", ")}.`,
    )
  return value
}

/** How one estimator's credit becomes another's. */
export interface Amendment {
  /** The new estimator's name. */
  readonly name: string
  /** What it reads from `Batch.statistics`, besides what the estimator under it reads. */
  readonly needs?: readonly Need[] | undefined
  change(credit: Credit, batch: Batch, context: EstimatorContext): Credit | Promise<Credit>
}

/**
 * An estimator on top of another: the same needs and state, and changed credit.
 *
 *     const bolder = amendCredit(gigpo(), {
 *       name: "bolder",
 *       change: (credit) => ({ ...credit, advantages: (credit.advantages as Float64Array).map((a) => 2 * a) }),
 *     })
 */
export function amendCredit(estimator: Estimator, { name, needs = [], change }: Amendment): Estimator {
  return {
    name,
    needs: [...new Set([...(estimator.needs ?? []), ...needs])],
    estimate: async (batch, context) => change(await estimator.estimate(batch, context), batch, context),
    ...(estimator.state && { state: () => estimator.state!() }),
    ...(estimator.restore && { restore: (state) => estimator.restore!(state) }),
  }
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", message)
}
