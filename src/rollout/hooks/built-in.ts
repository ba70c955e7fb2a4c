import type { Named } from "../../options/named.ts"
import type { CustomValue, OptionFields } from "../../options/table.ts"
import type { RolloutHooks } from "../hooks.ts"
import { beliefRewards } from "./belief-rewards.ts"
import { branchAt, branchAtFields } from "./branch-at.ts"
import { entropyBranching, entropyBranchingFields } from "./entropy-branching.ts"
import { expertProgress, expertProgressFields } from "./expert-progress.ts"
import { informationGain, informationGainFields } from "./information-gain.ts"
import { judge, judgeFields } from "./judge.ts"
import { monteCarlo } from "./monte-carlo.ts"
import { oracleCandidates, oracleCandidatesFields } from "./oracle-candidates.ts"
import { reasoningRewardFields, reasoningRewards } from "./reasoning-rewards.ts"
import { t2po, t2poFields } from "./t2po.ts"
import { thinkWhenUnsure, thinkWhenUnsureFields } from "./think-when-unsure.ts"

/** Built-in rollout hooks by their names in configurations. */
export const rolloutHooks = {
  t2po: { fields: t2poFields, make: t2po },
  "entropy-branching": { fields: entropyBranchingFields, make: entropyBranching },
  "think-when-unsure": { fields: thinkWhenUnsureFields, make: thinkWhenUnsure },
  "branch-at": { fields: branchAtFields, make: branchAt },
  "oracle-candidates": { fields: oracleCandidatesFields, make: oracleCandidates },
  "information-gain": { fields: informationGainFields, make: informationGain },
  "monte-carlo": { fields: {}, make: monteCarlo },
  "belief-rewards": { fields: {}, make: beliefRewards },
  "reasoning-rewards": { fields: reasoningRewardFields, make: reasoningRewards },
  "expert-progress": { fields: expertProgressFields, make: expertProgress },
  judge: { fields: judgeFields, make: judge },
} satisfies Readonly<Record<string, Named<OptionFields, RolloutHooks>>>

const names = ["start", "candidates", "sample", "onTurn", "guide", "score", "keep", "rolloutEnd"] as const

/** Custom rollout hooks. */
export const customRolloutHooks: CustomValue<RolloutHooks> = {
  validate: (value) =>
    names.some((name) => typeof (value as RolloutHooks | undefined)?.[name] === "function")
      ? undefined
      : `must be hooks: an object with one of ${names.join(", ")}`,
  meant: (value) => names.some((name) => name in value),
}
