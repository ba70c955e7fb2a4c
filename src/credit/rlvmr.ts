import { withDefaults } from "../options/defaults.ts"
import { string } from "../options/field.ts"
import { without } from "../options/fixed.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Estimator, StepCredit } from "./estimator.ts"
import { gigpoVariant } from "./gigpo-variant.ts"
import { normalizers } from "./grpo.ts"
import { normalizer } from "./normalizer.ts"
import { groupByKey, metricOf } from "./of-steps.ts"
import { gigpoFields } from "./options.ts"
import { gigpoPresets } from "./presets.ts"

const { gamma: _, ...defaults } = gigpoPresets.verlAgent // rewards of reasoning are not discounted

/** Options of `rlvmr`. The defaults are those of the authors' scripts. */
export const rlvmrFields = {
  ...withDefaults(without(gigpoFields, "gamma", "similarity", "stepScope", "whiten"), defaults),
  reward: string("reasoning-reward", "Metric of steps that rewards their reasoning."),
  tag: string("reasoning-tag", "Metric of steps that says which kind of reasoning they have."),
}

/** Options of `rlvmr`. */
export type RlvmrOptions = OptionsOf<typeof rlvmrFields>

/**
 * RLVMR estimator (its code in zzjweb/digitalhuman): the episode advantage of verl-agent, and the reward r of a step's reasoning compared
 * with the steps of the task that reason in the same way:
 *
 *     A = A^E + ω norm(r among the task's steps with the same tag)
 *
 * The reward of a step that is alone with its tag is used unchanged, as are returns without others to compare with. The hook `reasoning-rewards`
 * reports reward and tag. The details are those of GiGPO.
 *
 * @throws BAD_ARGUMENT for an invalid option, or where no step has the metrics
 */
export const rlvmr = defineEstimator({
  name: "rlvmr",
  fields: rlvmrFields,
  about: {
    system: "RLVMR",
    origin: "successor",
    changes: ["credit", "reward", "prompt"],
    equation:
      "A = A^E + ω norm(r among the task's steps with the same tag), r = 1 for a plan of a success, a new action explored, or a reflection that corrects an invalid action",
    source: "arXiv 2507.22844, its code (zzjweb/digitalhuman)",
    otherFiles: ["src/rollout/hooks/reasoning-rewards.ts", "src/environment/memory/meta-reasoning.ts"],
    set: { "training.rolloutHooks.name": "reasoning-rewards", "environment.memory": "meta-reasoning" },
    status: "exact",
    note: "The wording of the prompt is ours. The authors start from SFT on completions with the tags, which another model wrote.",
  },
  make(options: RlvmrOptions = {}): Estimator<StepCredit> {
    return gigpoVariant("rlvmr", options, rlvmrFields, undefined, ({ reward, tag, ...settings }, plain) => {
      const level = { ids: groupByKey(tag, plain, "rlvmr"), values: metricOf(plain, reward, "rlvmr", 0) }
      const { normalization, epsilon } = settings
      return {
        ...settings,
        levels: () => [level],
        normalize: normalizer({ ...normalizers[normalization], epsilon, singleton: "raw" }),
      }
    })
  },
})
