import type { NativePolicy } from "../engine/native/native-policy.ts"
import type { Archives } from "./archives.ts"
import type { Departure, Departures } from "./departures.ts"
import type { FrozenPolicies } from "./frozen-policies.ts"
import type { KeptWeights } from "./kept-weights.ts"
import type { Sessions } from "./sessions.ts"

export interface TinkerServerOptions {
  /** What clients call the model. */
  readonly model: string
  readonly maxPositions: number
  /** What a reply ends with where a client does not say. */
  readonly stopTokens: readonly number[]
  /** Opens a model to be trained: an adapter of this rank, or, with 0, all weights. */
  readonly open: (lora: {
    readonly rank: number
    readonly seed: number
    /** Aborted when the model is not needed any more. */
    readonly signal: AbortSignal
  }) => Promise<NativePolicy>
  /** Opens what only samples: a folder of saved weights, or the model as it is. */
  readonly openFrozen: (directory: string | undefined) => Promise<NativePolicy>
  /** Folder of the weights that clients save. */
  readonly checkpoints: string
  /** Bytes that these weights may take together. Default: 90 % of what they take and what is free when the first are saved. */
  readonly checkpointBytes?: number | undefined
  /** Clients must send it. */
  readonly key: string
  /** What the tokenizer is known by. */
  readonly tokenizer?: string | undefined
  /** Models that are trained at once; each takes the memory of its own. Default 1. */
  readonly models?: number | undefined
  /** Policies that only sample, kept open at once: the base model's and at least one of saved weights. Default 2. */
  readonly samplers?: number | undefined
  /** Seconds without a sign of life after which a client's models are freed. Default 300. */
  readonly silence?: number | undefined
  readonly departures?: readonly Departure[] | undefined
  readonly onError?: ((error: unknown) => void) | undefined
}

/** What all requests of one server share. */
export interface Serving {
  readonly options: TinkerServerOptions
  readonly departures: Departures
  readonly sessions: Sessions
  readonly kept: KeptWeights
  readonly archives: Archives
  readonly frozen: FrozenPolicies
}
