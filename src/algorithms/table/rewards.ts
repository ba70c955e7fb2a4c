import type { Algorithm } from "../algorithm.ts"

/** Rewards. In any training the hook `score` can replace the rewards of steps. */
export const rewards: readonly Algorithm[] = [
  {
    system: "RULER (a judge ranks the episodes of a group)",
    origin: "baseline",
    changes: ["reward"],
    equation: "R = score from 0 to 1 that a language model gives each episode of a group, in one comparison",
    source: "OpenPipe/ART",
    file: "src/rollout/hooks/judge.ts",
    set: { "training.turnHooks.name": "judge" },
    status: "interpreted",
    note: "Through an OpenAI-compatible server (`url`, `model`). The wording of the request is ours; `rubric` replaces its criterion.",
  },
  {
    system: "DERL (Differentiable Evolutionary RL)",
    origin: "successor",
    changes: ["reward", "curriculum"],
    equation: "random search of the weights of reward channels, accepted by validation",
    source: "abstract",
    file: "examples/extend/curriculum.ts",
    code: "curriculum: rewardWeights(options)",
    status: "interpreted",
    note: "Example to copy. The meta-gradient is not documented, so weights are found by random search.",
  },
  {
    system: "AgentForesight",
    origin: "successor",
    changes: ["reward"],
    source: "abstract",
    status: "undefined",
    note: "Trained auditor that finds the decisive error.",
  },
  {
    system: "StaRPO",
    origin: "successor",
    changes: ["reward"],
    source: "arXiv 2604.08905, abstract",
    status: "undefined",
    note: "Rewards for autocorrelation and path efficiency. Related: `gdpo` accepts any rewards as channels.",
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
    status: "needs images",
    note: "Rewards for text and image. Related: `gdpo` accepts reward channels.",
  },
]
