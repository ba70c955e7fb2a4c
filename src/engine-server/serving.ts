import type { NativePolicy } from "../engine/native/native-policy.ts"
import type { Archives } from "./archives.ts"
import type { Departure, Departures } from "./departures.ts"
import type { FrozenPolicies } from "./frozen-policies.ts"
import type { KeptWeights } from "./kept-weights.ts"
import type { Sessions } from "./sessions.ts"

/** Options of `tinkerServer`. */
export interface TinkerServerOptions {
  /** Name of the model for clients. */
  readonly model: string
  readonly maxPositions: number
  /** Stop tokens if the client gives none. */
  readonly stopTokens: readonly number[]
  /** Opens a trainable model with an adapter of the given rank; 0 trains all weights. */
  readonly open: (lora: {
    readonly rank: number
    readonly seed: number
    /** Aborted when the model is no longer needed. */
    readonly signal: AbortSignal
  }) => Promise<NativePolicy>
  /** Opens a policy that only samples: from a folder of saved weights, or the base model. */
  readonly openFrozen: (directory: string | undefined) => Promise<NativePolicy>
  /** Folder of the weights that clients save. */
  readonly checkpoints: string
  /** Maximum bytes of these weights. Default: 90 % of their size plus the free space when the first are saved. */
  readonly checkpointBytes?: number | undefined
  /** Key that clients must send. */
  readonly key: string
  /** Identifier of the tokenizer, such as its SHA-256. */
  readonly tokenizer?: string | undefined
  /** Maximum number of trainable models; each needs separate memory. Default 1. */
  readonly models?: number | undefined
  /** Maximum number of open policies that only sample: the base model and at least one of saved weights. Default 2. */
  readonly samplers?: number | undefined
  /** Seconds without a request after which a client's models are freed. Default 300. */
  readonly silence?: number | undefined
  readonly departures?: readonly Departure[] | undefined
  readonly onError?: ((error: unknown) => void) | undefined
}

/** State that all requests of one server share. */
export interface Serving {
  readonly options: TinkerServerOptions
  readonly departures: Departures
  readonly sessions: Sessions
  readonly kept: KeptWeights
  readonly archives: Archives
  readonly frozen: FrozenPolicies
}
