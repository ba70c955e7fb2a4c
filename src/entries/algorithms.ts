// `gigpo/algorithms`: the table of implemented algorithms, with sources and status.

import "../check-node.cts"

export type { Algorithm, Change, Origin, Standing } from "../algorithms/algorithm.ts"
export { algorithms } from "../algorithms/algorithms.ts"
