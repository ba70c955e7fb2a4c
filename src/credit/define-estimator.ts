import { defining } from "../options/define.ts"
import type { Estimator } from "./estimator.ts"

/**
 * Estimator that configurations can name, in one value: a factory with its name, options and description. One line in
 * src/credit/shipped.ts ships it: the registry, the public API, `gigpo algorithms` and docs/algorithms.md follow from it.
 */
export const defineEstimator = defining<Estimator>()
