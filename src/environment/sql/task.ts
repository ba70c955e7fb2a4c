import type { SqlDatabase } from "./process-source.ts"

/** A question about a database. */
export interface SqlTask {
  readonly id: string
  readonly database: SqlDatabase
  readonly question: string
  /** A statement that answers it: what it gives is the right result. */
  readonly gold: string
  /** The data set or the kind of the question, where it is known: success is reported for each. */
  readonly source?: string
  /** Of a question about the embedded world: how it is answered step by step. */
  readonly plan?: { readonly lookups: readonly string[]; readonly sum?: string }
}
