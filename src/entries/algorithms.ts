// `gigpo/algorithms`: table of algorithms, with sources and implementation status.

import "../check-node.cts"

export type { Algorithm, Change, Origin, AlgorithmStatus } from "../algorithms/algorithm.ts"
export { algorithms } from "../algorithms/algorithms.ts"
