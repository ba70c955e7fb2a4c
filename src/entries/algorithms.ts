// `gigpo/algorithms`: table of algorithms, with sources and implementation status.

import "../check-node.mts"

export type { Algorithm, AlgorithmOrigin, AlgorithmPart, AlgorithmStatus } from "../algorithms/algorithm.ts"
export { algorithms } from "../algorithms/algorithms.ts"
