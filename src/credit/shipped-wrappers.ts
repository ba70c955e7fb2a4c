// Shipped estimators around another one (`of`), one line each.

export { type AepoOptions, aepo } from "./aepo.ts"
export { type EmpgOptions, empg } from "./empg.ts"
export { type SpearOptions, spear } from "./spear.ts"
