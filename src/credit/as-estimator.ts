import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { thrownBy } from "../options/outcome.ts"
import { checkPart, partProblem } from "../options/own.ts"
import { GigpoError } from "../util/errors.ts"
import { checkCredit, estimatorKind } from "./check-credit.ts"
import type { Batch, Credit, Estimator, EstimatorContext, Need } from "./estimator.ts"

/** What is wrong with an estimator, to be said after what it is called; undefined where it is one. */
export function estimatorProblem(value: unknown): string | undefined {
  return partProblem(value, estimatorKind)
}

/**
 * What was handed in, as an estimator: one already, or a function `(batch, context) => credit`, which goes by its own name.
 *
 * @throws BAD_ARGUMENT for anything else
 */
export function asEstimator(value: Estimator | Estimator["estimate"]): Estimator {
  checkPart(value, estimatorKind)
  return typeof value === "function" ? { name: value.name || "estimator", estimate: value } : value
}

/**
 * What an estimator says of a batch, checked.
 *
 * @throws BAD_ARGUMENT where it throws, or gives what does not fit the batch; NON_FINITE for numbers that are not finite. What is
 * thrown once the signal is aborted stays as it is.
 */
export async function estimate<C extends Credit>(
  estimator: Estimator<C>,
  batch: Batch,
  context: EstimatorContext,
): Promise<C> {
  let credit: C
  try {
    credit = await estimator.estimate(batch, context)
  } catch (cause) {
    throw context.signal?.aborted ? cause : thrownBy(estimatorKind, estimator.name, cause)
  }
  return checkCredit(credit, batch, estimator.name)
}

/** How one estimator's credit becomes another's. */
export interface EstimatorWrapper<C extends Credit = Credit> {
  /** The new estimator's name. */
  readonly name: string
  /** What it reads from `Batch.statistics`, besides what the estimator under it reads. */
  readonly needs?: readonly Need[] | undefined
  change(credit: C, batch: Batch, context: EstimatorContext): Credit | Promise<Credit>
}

const amendmentKeys: KeysOf<EstimatorWrapper> = { name: true, needs: true, change: true }

/**
 * An estimator on top of another: the same needs and state, and changed credit.
 *
 *     const bolder = wrapEstimator(gigpo(), {
 *       name: "bolder",
 *       change: (credit) => ({ ...credit, advantages: credit.advantages.map((a) => 2 * a) }),
 *     })
 *
 * What gives one advantage a step says so in its type, as `gigpo` and `grpo` do; of others the advantages may be one a token.
 */
export function wrapEstimator<C extends Credit>(estimator: Estimator<C>, amendment: EstimatorWrapper<C>): Estimator {
  checkPart(estimator, estimatorKind)
  checkArguments("wrapEstimator", amendment, amendmentKeys)
  const { name, needs = [], change } = amendment
  if (typeof change !== "function")
    throw new GigpoError("BAD_ARGUMENT", "wrapEstimator: change must be a function (credit) => credit.")
  return {
    name,
    needs: [...new Set([...(estimator.needs ?? []), ...needs])],
    groups: estimator.groups,
    estimate: async (batch, context) => change(await estimate(estimator, batch, context), batch, context),
    ...(estimator.state && { state: () => estimator.state!() }),
    ...(estimator.restore && { restore: (state) => estimator.restore!(state) }),
  }
}
