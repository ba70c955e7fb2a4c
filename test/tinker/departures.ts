import type { Departure } from "../../src/engine-server/departures.ts"

/**
 * Deviations from the Tinker API, each seen in a published server. A client must either give the same result or reject.
 */
export const departures: Readonly<Record<Departure, string>> = {
  "mean-of-means":
    "Weighted mean per example, Σ weight · loss / Σ weight, then mean over the batch of an optimizer step (not summed; SkyRL on JAX).",
  "negative-weights":
    "With mean-of-means, a cross-entropy with a negative sum of weights divides by 1e-9 (SkyRL on JAX).",
  "ignored-clip": "grad_clip_norm has no effect (SkyRL, verl-tinker).",
  "short-prompts": "prompt_logprobs has no value for the first token (SkyRL on JAX).",
  "raw-log-probs":
    "Samples report log-probabilities at temperature 1, whatever the sampling temperature (SkyRL on JAX).",
  "shared-slot":
    "Trainer and samplers share weights: an older sampler uses newer ones, or resets the trainer if another was created (SkyRL on JAX).",
  "no-metrics": "Losses report no metrics (SkyRL on JAX).",
  "no-gradient-norm": "Optimizer steps report no gradient norm (TuFT).",
  "no-dro": "The loss dro is not supported (SkyRL).",
  "no-duplicates": "A repeated request is executed twice (verl-tinker).",
  "results-once": "A result is delivered only once (verl-tinker).",
  "plain-try-again": "Sends one extra try_again after the result is ready, without the queue state (verl-tinker).",
  "zero-log-probs": "forward_backward reports zeros instead of log-probabilities (verl-tinker).",
  "truncated-importance": "importance_sampling clips its ratio at 2 (verl-tinker).",
  "silent-cross-entropy": "ppo and cispo are accepted, but cross-entropy is computed (Twinkle).",
  "json-only": "Protocol buffers are not supported (verl-tinker, Twinkle).",
  "protobuf-only": "forward_backward accepts protocol buffers only (TuFT).",
  "other-success": "Requests are answered with 201 and 202 (TuFT).",
  "no-reference": "The base model cannot be sampled.",
  "named-samplers": "Weights for sampling need a name.",
  "not-ours": "No features beyond the API: samples have seeds instead of keys, and gradients cannot be dropped.",
}
