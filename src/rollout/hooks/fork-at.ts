import { integer } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { RolloutHooks } from "../hooks.ts"

/** Options of `forkAt`. */
export const forkAtFields = {
  step: integer(1, "The step, from 0, at which every episode of a group branches.", { min: 0 }),
  into: integer(8, "Episodes that go on from there; rollout.maxForks must be one less at least.", { min: 2 }),
}

/** Options of `forkAt`. */
export type ForkAtOptions = OptionsOf<typeof forkAtFields>

/**
 * Every episode of a group branches at one step: with `planFirst`, whose plan is step 0, a group is `groupSize` plans with `into` rollouts
 * of each, the two levels of StraTA (arXiv 2605.06642: 4 plans, 8 rollouts). Branches do not branch again.
 *
 * @throws BAD_ARGUMENT for an option that has no meaning
 */
export function forkAt(options: ForkAtOptions = {}): Pick<RolloutHooks, "onTurn"> {
  const { step, into } = readOptions("forkAt", options, forkAtFields)
  return { onTurn: ({ index }) => (index === step ? { kind: "fork", into } : { kind: "accept" }) }
}
