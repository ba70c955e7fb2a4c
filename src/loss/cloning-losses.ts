import { byName } from "../options/define.ts"
import * as shipped from "./shipped-cloning.ts"

/** Built-in losses of supervised fine-tuning by their names in configurations. */
export const sftLosses = byName(shipped)
