import type { About } from "../options/about.ts"

export { type AlgorithmOrigin, type AlgorithmPart, type AlgorithmStatus, changes, statuses } from "../options/about.ts"

/** Entry of the table of algorithms, the source of `gigpo algorithms`, docs/algorithms.md, tests and bench:algorithms. */
export type Algorithm = About
