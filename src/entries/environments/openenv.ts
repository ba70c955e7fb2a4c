// `gigpo/environments/openenv`: environments behind an OpenEnv server.

import "../../check-node.mts"

export { openenv } from "../../environment/openenv/openenv.ts"
export type { ObservedText, OpenEnvOptions, OpenEnvResponse, OpenEnvTask } from "../../environment/openenv/options.ts"
