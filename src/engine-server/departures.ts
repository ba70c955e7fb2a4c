/**
 * Where servers of the Tinker API do otherwise than it says. Each was seen in one that people use; a client must either do the same with
 * all of them or refuse.
 */
export const departures = {
  "mean-of-means":
    "Gradients are no sum: per datum Σ weight · loss / Σ weight, then the mean over all data of an optimizer step (SkyRL on JAX).",
  "negative-weights":
    "With mean-of-means, a cross-entropy whose weights add up to less than 0 divides by 1e-9 (SkyRL on JAX).",
  "ignored-clip": "grad_clip_norm does nothing (SkyRL, verl-tinker).",
  "short-prompts": "prompt_logprobs leaves out the first token's (SkyRL on JAX).",
  "raw-log-probs": "Samples tell log-probabilities at temperature 1, whatever they were drawn at (SkyRL on JAX).",
  "shared-slot":
    "Trainer and sampler share their weights: an older sampler gives newer ones, and, once another was made, puts the trainer back to its own (SkyRL on JAX).",
  "no-metrics": "Losses tell no metrics (SkyRL on JAX).",
  "no-gradient-norm": "Optimizer steps tell no norm (TuFT).",
  "no-dro": "The loss dro is unknown (SkyRL).",
  "no-duplicates": "A request that is sent twice is done twice (verl-tinker).",
  "results-once": "A result is given once, and gone (verl-tinker).",
  "plain-try-again": "try_again says nothing of the queue, and comes once more when the result is there (verl-tinker).",
  "zero-log-probs": "forward_backward tells zeros in the place of log-probabilities (verl-tinker).",
  "truncated-importance": "importance_sampling cuts its ratio off at 2 (verl-tinker).",
  "silent-cross-entropy": "ppo and cispo are taken, and cross-entropy is run (Twinkle).",
  "json-only": "No protocol buffers are read or written (verl-tinker, Twinkle).",
  "protobuf-only": "forward_backward takes protocol buffers only (TuFT).",
  "other-success": "Requests are answered 201 and 202 (TuFT).",
  "no-reference": "There is no sampler of the base model.",
  "named-samplers": "Weights to sample from need a name.",
  "not-ours": "Nothing beyond the API: samples have seeds and no keys, gradients cannot be forgotten.",
} as const

export type Departure = keyof typeof departures
export type Departures = ReadonlySet<Departure>
