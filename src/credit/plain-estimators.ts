import { byName } from "../options/define.ts"
import { gigpo } from "./gigpo.ts"
import { grpo } from "./grpo.ts"
import * as shipped from "./shipped.ts"

/** Shipped estimators that stand alone, by their names in configurations. */
export const plainEstimators = byName({ gigpo, grpo, ...shipped })
