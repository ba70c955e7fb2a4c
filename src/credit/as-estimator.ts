import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { thrownBy } from "../options/outcome.ts"
import { checkPart, partProblem } from "../options/own.ts"
import { GigpoError } from "../util/errors.ts"
import { checkCredit, estimatorKind } from "./check-credit.ts"
import type { Batch, Credit, Estimator, EstimatorContext, EstimatorStatistic } from "./estimator.ts"

/** Predicate of a message about an invalid estimator ("has no name"). undefined for a valid estimator. */
export function estimatorProblem(value: unknown): string | undefined {
  return partProblem(value, estimatorKind)
}

/**
 * Returns an estimator for an estimator object or a function `(batch, context) => credit`. The estimator of a function has the name of the
 * function.
 *
 * @throws GigpoError `BAD_ARGUMENT` for any other value.
 */
export function asEstimator(value: Estimator | Estimator["estimate"]): Estimator {
  checkPart(value, estimatorKind)
  return typeof value === "function" ? { name: value.name || "estimator", estimate: value } : value
}

/**
 * Runs an estimator and checks its result.
 *
 * @throws GigpoError `BAD_ARGUMENT` if the estimator throws or its result does not fit the batch, `NON_FINITE` for numbers that are not
 * finite. Errors after an abort of the signal are thrown unchanged.
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

/** Change of an estimator's result, for `wrapEstimator`. */
export interface EstimatorWrapper<C extends Credit = Credit> {
  /** Name of the new estimator. */
  readonly name: string
  /** Statistics that the change needs, in addition to those of the estimator. */
  readonly needs?: readonly EstimatorStatistic[] | undefined
  /** Returns the changed result. */
  change(credit: C, batch: Batch, context: EstimatorContext): Credit | Promise<Credit>
}

const amendmentKeys: KeysOf<EstimatorWrapper> = { name: true, needs: true, change: true }

/**
 * Returns an estimator that changes the result of another one, with the same needs and state.
 *
 *     const bolder = wrapEstimator(gigpo(), {
 *       name: "bolder",
 *       change: (credit) => ({ ...credit, advantages: credit.advantages.map((a) => 2 * a) }),
 *     })
 *
 * The type of `credit` states whether advantages are per step, as for `gigpo` and `grpo`; for other estimators they may be per token.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid estimator or change.
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
