import type { About } from "../options/about.ts"

export { type Change, changes, type Origin, type Standing, standings } from "../options/about.ts"

/** Entry of the table of algorithms: `gigpo algorithms`, docs/algorithms.md, the tests and bench:algorithms are made of it. */
export type Algorithm = About
