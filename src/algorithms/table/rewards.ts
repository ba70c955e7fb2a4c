import type { Algorithm } from "../algorithm.ts"

/** Rewards. In any training the hook `score` can replace the rewards of steps. */
export const rewards: readonly Algorithm[] = [
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
    system: "DPEPO with its process reward",
    origin: "successor",
    changes: ["reward", "credit", "rollout"],
    equation:
      "as DPEPO; return of a failed episode + (the expert's first actions that it contains in order) / (the expert's actions)",
    source: "my1ab/Code-for-DPEPO_modified",
    file: "src/rollout/hooks/expert-progress.ts",
    set: {
      "training.estimator.name": "dpepo",
      "training.turnHooks.name": "expert-progress",
      "environment.wrapper.name": "parallel",
    },
    status: "exact",
    note: "One of the authors' configurations. The expert is that of the environment.",
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
    equation: "r = Q(s_t, a_t), a trained model of the mean return of rollouts from the step; then online DPO",
    source: "arXiv 2502.10325; sanjibanc/agent_prm",
    status: "not implemented",
    note: "Needs a trained reward model, which no part of this package trains. Related: `vine-ppo` estimates the same means without a model.",
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
