import { byName } from "../options/define.ts"
import * as shipped from "./shipped.ts"

/** Built-in policy losses by their names in configurations. */
export const losses = byName(shipped)
