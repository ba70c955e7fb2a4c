import { existsSync } from "node:fs"

/** The clients are installed beside the examples that are written with them: `npm ci --prefix examples/agents`. */
export const installed: boolean = existsSync(new URL("../../examples/agents/node_modules", import.meta.url))

export { load } from "../../examples/agents/load.ts"
