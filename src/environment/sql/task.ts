import type { SqlDatabase } from "./process-source.ts"

/** Question about a database. */
export interface SqlTask {
  readonly id: string
  readonly database: SqlDatabase
  readonly question: string
  /** Statement whose result is the correct answer. */
  readonly gold: string
  /** Data set or kind of the question, if known; success is reported for each. */
  readonly source?: string
  /** Stepwise solution of a question about the embedded shops: lookups, and a formula of their values. */
  readonly plan?: { readonly lookups: readonly string[]; readonly sum?: string }
}
