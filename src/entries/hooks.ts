// `gigpo/hooks`: hooks of the rollout, which branch episodes, resample completions, extend the thinking and judge episodes.

import "../check-node.mts"

export { beliefRewards } from "../rollout/hooks/belief-rewards.ts"
export { type BranchAtOptions, branchAt } from "../rollout/hooks/branch-at.ts"
export { type EntropyBranchingOptions, entropyBranching } from "../rollout/hooks/entropy-branching.ts"
export { type ExpertProgressOptions, expertProgress } from "../rollout/hooks/expert-progress.ts"
export { type InformationGainOptions, informationGain } from "../rollout/hooks/information-gain.ts"
export { type JudgeOptions, judge } from "../rollout/hooks/judge.ts"
export { monteCarlo } from "../rollout/hooks/monte-carlo.ts"
export { type OracleCandidatesOptions, oracleCandidates } from "../rollout/hooks/oracle-candidates.ts"
export { type ReasoningRewardsOptions, reasoningRewards } from "../rollout/hooks/reasoning-rewards.ts"
export { type T2poOptions, t2po } from "../rollout/hooks/t2po.ts"
export { type ThinkWhenUnsureOptions, thinkWhenUnsure } from "../rollout/hooks/think-when-unsure.ts"
export type {
  CandidateSet,
  EpisodeStart,
  Group,
  GuideContext,
  HookContext,
  RolloutHooks,
  SampledCompletion,
  SampledTurn,
  SamplingTurn,
  TurnContext,
  TurnDecision,
} from "../rollout/hooks.ts"
export { joinHooks } from "../training/curriculum/join-hooks.ts"
