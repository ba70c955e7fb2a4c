/**
 * Name of a deviation from the Tinker API, as published servers have them. Only tests of clients set one; test/tinker/departures.ts describes each.
 */
export type Departure =
  | "mean-of-means"
  | "negative-weights"
  | "ignored-clip"
  | "short-prompts"
  | "raw-log-probs"
  | "shared-slot"
  | "no-metrics"
  | "no-gradient-norm"
  | "no-dro"
  | "no-duplicates"
  | "results-once"
  | "plain-try-again"
  | "zero-log-probs"
  | "truncated-importance"
  | "silent-cross-entropy"
  | "json-only"
  | "protobuf-only"
  | "other-success"
  | "no-reference"
  | "named-samplers"
  | "not-ours"

export type Departures = ReadonlySet<Departure>
