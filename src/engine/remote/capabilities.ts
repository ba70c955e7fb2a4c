// What a server does, where servers differ. `probe` finds it out by trying.

/** How the losses of tokens become the gradient. */
export type Reduction =
  | "sum" // Σ over all tokens of all data: what the API says
  | "mean-of-means" // per datum Σ weight · loss / Σ weight, and the mean of these over the data of an optimizer step: SkyRL on JAX

/** What is to count how much. Where a server takes means, advantages are scaled by what it divides by. */
export interface Form {
  readonly reduction: Reduction
  /** Whether losses of advantages are told by `weights` which tokens count. */
  readonly takesWeights: boolean
}

/** Features of a Tinker server, as found by probing it. */
export interface Capabilities extends Form {
  /** Whether "ppo" is the clipped surrogate. Some servers take the name and run another loss. */
  readonly clips: boolean
  /** The loss by which any other reaches the network, token by token; undefined where there is none. */
  readonly custom: "cross_entropy" | "importance_sampling" | undefined
  readonly clipsGradients: boolean
  readonly tellsGradientNorm: boolean
  /** Whether a request that is sent twice is done once. */
  readonly knowsAgain: boolean
  /** Whether what a loss reports are the policy's log-probabilities, not those that it was given, or zeros. */
  readonly tellsLogProbs: boolean
  /** Whether the model that training began with can be asked. */
  readonly reference: boolean
  /** Whether gradients can be forgotten. */
  readonly clears: boolean
  /** Whether a sample can be keyed as a native one is, so that it is the same to the token. */
  readonly keyed: boolean
}

/** What was tried and came out: for whoever wants to know why. Kept beside the run. */
export interface ProbeReport {
  readonly url: string
  readonly model: string
  readonly date: string
  readonly capabilities: Capabilities
  /** Numbers behind it, by name. */
  readonly measured: Readonly<Record<string, number | string | boolean>>
}
