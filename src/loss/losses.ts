import { byName } from "../options/define.ts"
import * as shipped from "./shipped.ts"

/** Shipped policy losses by their names in configurations. */
export const losses = byName(shipped)
