import type { Algorithm } from "../algorithm.ts"

/**
 * Policy losses. r = p / p_old of a token, l = log r, A its advantage. Each can be combined with an aggregation, a KL term and an entropy
 * term.
 */
export const losses: readonly Algorithm[] = [
  {
    system: "KL to the reference, adaptive",
    origin: "baseline",
    changes: ["loss", "reward"],
    equation: "+ β KL, β *= 1 + clip(KL / target - 1, ±0.2) steps / horizon",
    source: "arXiv 1909.08593",
    file: "src/loss/adaptive-kl.ts",
    otherFiles: ["src/loss/kl-estimators.ts"],
    set: { "training.loss.klWeight": 0.1, "training.loss.adaptiveKl.target": 0.05 },
    status: "exact",
    note: "In the loss, or in the reward with `klPlacement: reward`. KL estimators (`klEstimator`): k1, k2, k3 (at most 10), abs, k1+, k3+.",
  },
  {
    system: "truncated importance sampling",
    origin: "baseline",
    changes: ["loss", "tokens"],
    equation: "loss of a token times min(p_trainer / p_sampler, 2)",
    source: "verl",
    file: "src/loss/importance-weights.ts",
    set: {
      "training.oldLogProbs": "recomputed",
      "training.rolloutCorrection.level": "token",
      "training.rolloutCorrection.truncate": 2,
    },
    status: "exact",
  },
]
