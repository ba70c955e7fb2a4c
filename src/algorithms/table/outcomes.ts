import type { Algorithm } from "../algorithm.ts"

const estimator = (name: string) => ({ "training.estimator.name": name })

/** Comparison of whole episodes of a task, and critics: the baselines of GiGPO and its successors. */
export const outcomes: readonly Algorithm[] = [
  {
    system: "DAPO",
    origin: "baseline",
    changes: ["credit", "loss", "rollout", "reward"],
    equation: "GRPO; clip to [1 - 0.2, 1 + 0.28]; groups with equal returns are replaced; penalty for long completions",
    source: "arXiv 2503.14476",
    file: "src/credit/overlong.ts",
    set: {
      ...estimator("grpo"),
      "training.loss.clipHigh": 0.28,
      "training.dynamicSampling": true,
      "training.overlong.cache": 2,
    },
    status: "exact",
    note: "`cache` is the length over which the penalty grows from 0 to 1.",
  },
  {
    system: "Uno-Orchestra",
    origin: "successor",
    changes: ["credit"],
    source: "abstract",
    status: "undefined",
    note: "Credit for choices among agents. Related: `dr-mas` compares per agent.",
  },
]
