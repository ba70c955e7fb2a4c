import { integer, oneOf } from "../../options/field.ts"
import type { OptionsOf, ResolvedOf } from "../../options/table.ts"
import { agentFields, historyField } from "../agent.ts"
import { observationField } from "../picture.ts"

/** Task of a card environment. The seed determines all cards. */
export interface CardTask {
  /** Integer from 0 to 2^53 - 1. The cards are those of verl-agent's environment with the same seed. */
  readonly seed: number
}

/** Options of the four card environments but `maxSteps`. `history` is 0 by default, because an observation shows the whole state. */
export const sharedCardFields = {
  ...agentFields<CardTask>(),
  history: historyField(0),
  observation: observationField(),
  reward: oneOf(
    "verl-agent",
    ["verl-agent", "rl4vlm"],
    'Reward variant. "verl-agent": no negative rewards except on the number line. "rl4vlm", the original: -1 for rejected ' +
      "numbers, failed formulas and lost hands.",
  ),
  completionFormat: oneOf(
    "json",
    ["json", "tags"],
    'Format of completions. "json": `{"thoughts": "..", "action": ".."}`, parsed as in verl-agent; `thinking` has no effect. ' +
      '"tags": `<think>..</think><action>..</action>`, which small models learn more easily.',
  ),
}

/** Options of a card environment with this default of `maxSteps`. */
export function cardFields(maxSteps: number) {
  return {
    ...sharedCardFields,
    maxSteps: integer(maxSteps, "Maximum number of steps of an episode, invalid completions included; 1 to 10,000.", {
      min: 1,
      max: 10_000,
    }),
  }
}

/** Options that all card environments share. */
export type CardOptions = OptionsOf<typeof sharedCardFields> &
  Pick<OptionsOf<ReturnType<typeof cardFields>>, "maxSteps">
export type CardSettings = ResolvedOf<ReturnType<typeof cardFields>>
