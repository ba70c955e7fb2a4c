import type { Named } from "../options/named.ts"
import type { Fields } from "../options/table.ts"
import { aepo, aepoFields } from "./aepo.ts"
import { empg, empgFields } from "./empg.ts"
import type { Estimator } from "./estimator.ts"
import { plainEstimators } from "./plain-estimators.ts"
import { spear, spearFields } from "./spear.ts"

/** The estimators that ship, by the names that options give them: those that stand alone, and those around another (`of`). */
export const estimators = {
  ...plainEstimators,
  empg: { fields: empgFields, make: empg },
  aepo: { fields: aepoFields, make: aepo },
  spear: { fields: spearFields, make: spear },
} satisfies Readonly<Record<string, Named<Fields, Estimator>>>
