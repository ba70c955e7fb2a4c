/** What JSON holds. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Numbers that are too many for JSON. */
export type StateArray = Float32Array | Float64Array | Int32Array | Uint8Array

/** All that something with a memory must keep, so that a run goes on from a checkpoint as if it had never stopped. */
export interface State {
  readonly json?: Json
  readonly arrays?: Readonly<Record<string, StateArray>>
}

/** An estimator, a loss, hooks or a source of tasks that remembers something is also this: saved with every checkpoint. */
export interface Stateful {
  state(): State
  restore(state: State): void
}
