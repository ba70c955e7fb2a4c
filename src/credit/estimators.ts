import { byName } from "../options/define.ts"
import type { EstimatorChoice } from "./options.ts"
import { plainEstimators } from "./plain-estimators.ts"
import * as wrappers from "./shipped-wrappers.ts"

/** All shipped estimators by their names in configurations, including wrappers of another estimator (option `of`). */
export const estimators = { ...plainEstimators, ...byName(wrappers) }

/** Choice of a shipped or custom estimator. */
export interface AnyEstimatorChoice extends EstimatorChoice<typeof estimators> {}
