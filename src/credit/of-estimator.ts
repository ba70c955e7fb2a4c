import { choice } from "../options/field.ts"
import { fieldsOf, makeNamed } from "../options/named.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf, ResolvedOf } from "../options/table.ts"
import { asEstimator } from "./as-estimator.ts"
import type { Estimator } from "./estimator.ts"
import { customEstimator, type EstimatorChoice } from "./options.ts"
import { plainEstimators } from "./plain-estimators.ts"

/** Choice of an estimator that stands alone. Declarations of wrappers refer to this interface; a type would be repeated in each. */
export interface PlainEstimatorChoice extends EstimatorChoice<typeof plainEstimators> {}

const estimator: PlainEstimatorChoice = choice(
  "gigpo",
  fieldsOf(plainEstimators),
  "Estimator whose advantages are changed.",
  {
    own: customEstimator,
  },
)

/** Option of a wrapper: the estimator whose result is changed. */
export const ofFields = { estimator }

/**
 * Returns the inner estimator of a wrapper: a shipped estimator by name and options, or a custom one. In code, an estimator or its
 * function can be passed directly.
 */
export function innerEstimator(name: string, estimator: OptionsOf<typeof ofFields>["estimator"]): Estimator {
  const resolved: ResolvedOf<typeof ofFields>["estimator"] = readOptions(name, { estimator }, ofFields).estimator
  return "use" in resolved ? asEstimator(resolved.use) : makeNamed<Estimator>(plainEstimators, resolved)
}
