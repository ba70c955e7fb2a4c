import { byName } from "../options/define.ts"
import * as shipped from "./shipped-cloning.ts"

/** Shipped losses of cloning by their names in configurations. */
export const sftLosses = byName(shipped)
