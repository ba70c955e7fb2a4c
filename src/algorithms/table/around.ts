import type { Algorithm } from "../algorithm.ts"

/** Changes of the advantages of another estimator, and token weights. */
export const around: readonly Algorithm[] = [
  {
    system: "ActFocus (Resolving Action Bottleneck)",
    origin: "successor",
    changes: ["tokens"],
    equation: "loss of a token times w(think), w(action), w(tool) or w(other)",
    source: "arXiv 2605.14558, abstract",
    file: "src/credit/token-weights.ts",
    set: { "training.tokenWeights.think": 0.5, "training.tokenWeights.action": 2 },
    status: "interpreted",
    note: "Static weights only. The paper's weights, from the variance of rewards and an energy, are not documented.",
  },
  {
    system: "SERL (What and When to Distill)",
    origin: "successor",
    changes: ["tokens", "data"],
    equation: "w = clip(e^(sign(A) α D), low, high) on action tokens, D = log p_teacher - log p",
    source: "arXiv 2605.19447, a summary",
    file: "src/credit/teacher-token-weights.ts",
    set: { "training.teacherTokenWeights.alpha": 1 },
    brings: "teacher",
    status: "interpreted",
    note: "Bounds and means over an action are not documented. With hindsight: `training.privileged.context=feedback`.",
  },
  {
    system: "Entropy Polarity / PAPO",
    origin: "successor",
    changes: ["tokens"],
    source: "arXiv 2605.11775, abstract",
    status: "undefined",
    note: "Related: `clip-cov` and `kl-cov` select tokens by their effect on the entropy.",
  },
  {
    system: "EP-GRPO",
    origin: "relative",
    changes: ["tokens"],
    source: "arXiv 2605.04960, a text by others",
    status: "undefined",
  },
  {
    system: "ResRL",
    origin: "successor",
    changes: ["tokens"],
    equation: "weight of a token of a failure: energy of its hidden state outside the first 64 components of successes",
    source: "1229095296/ResRL",
    status: "not implemented",
    note: "Needs the hidden state of every token, which no engine of this package returns.",
  },
]
