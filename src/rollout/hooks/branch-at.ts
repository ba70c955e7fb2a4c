import { integer } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { RolloutHooks } from "../hooks.ts"

/** Options of `branchAt`. */
export const branchAtFields = {
  step: integer(1, "Index of the step, from 0, at which all episodes of a group branch.", { min: 0 }),
  branchingFactor: integer(
    8,
    "Number of episodes that continue from there; rollout.maxBranches must be at least one less.",
    {
      min: 2,
    },
  ),
}

/** Options of `branchAt`. */
export type BranchAtOptions = OptionsOf<typeof branchAtFields>

/**
 * Hook that branches all episodes of a group at one step. With `planFirst`, whose plan is step 0, a group has `groupSize` plans with `branchingFactor`
 * rollouts each, the two levels of StraTA (arXiv 2605.06642: 4 plans, 8 rollouts). Branches do not branch again.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export function branchAt(options: BranchAtOptions = {}): Pick<RolloutHooks, "onTurn"> {
  const { step, branchingFactor } = readOptions("branchAt", options, branchAtFields)
  return { onTurn: ({ index }) => (index === step ? { kind: "branch", branchingFactor } : { kind: "accept" }) }
}
