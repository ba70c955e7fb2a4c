import type { Algorithm } from "../algorithm.ts"

/** Rewards. In any training the hook `score` can replace the rewards of steps. */
export const rewards: readonly Algorithm[] = [
  {
    system: "DERL (Differentiable Evolutionary RL)",
    origin: "successor",
    changes: ["reward", "curriculum"],
    equation: "weights of reward channels, changed at random; what validation confirms stays",
    source: "abstract",
    file: "examples/extend/curriculum.ts",
    code: "curriculum: rewardWeights(options)",
    status: "reading",
    note: "An example to copy: its meta-gradient is not defined in public, ours is a search.",
  },
  {
    system: "AgentForesight",
    origin: "successor",
    changes: ["reward"],
    source: "abstract",
    status: "undefined",
    note: "A trained auditor that finds the decisive error.",
  },
  {
    system: "StaRPO",
    origin: "successor",
    changes: ["reward"],
    source: "arXiv 2604.08905, abstract",
    status: "undefined",
    note: "Autocorrelation and path efficiency; `gdpo` takes rewards of any kind as channels.",
  },
  {
    system: "AgentPRM",
    origin: "relative",
    changes: ["reward"],
    source: "not examined",
    status: "undefined",
  },
  {
    system: "Gen-Searcher (+KnowGen)",
    origin: "successor",
    changes: ["reward"],
    source: "abstract",
    status: "images",
    note: "Rewards of text and image; `gdpo` takes channels.",
  },
]
