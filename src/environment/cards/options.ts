import { integer, oneOf } from "../../options/field.ts"
import type { OptionsOf, Resolved } from "../../options/table.ts"
import { agentFields, historyField } from "../agent.ts"

/** One deal. The seed decides everything, cards not yet drawn included. */
export interface CardTask {
  /** A whole number from 0 to 2^53 - 1. Of verl-agent's environments, those that are seeded alike deal the same. */
  readonly seed: number
}

/** What the four card environments have in common. History is 0 by default: a state tells everything. */
export function cardFields(maxSteps: number) {
  return {
    ...agentFields<CardTask>(),
    history: historyField(0),
    reward: oneOf(
      "verl-agent",
      ["verl-agent", "rl4vlm"],
      'Whose rewards. "verl-agent" punishes nothing but a wrong way on the number line; "rl4vlm", the original, takes 1 for ' +
        "refused numbers, for formulas that fail and for lost hands.",
    ),
    reply: oneOf(
      "json",
      ["json", "tags"],
      'How the model replies. "json": `{"thoughts": "..", "action": ".."}`, read as verl-agent reads it; `thinking` says ' +
        'nothing to that. "tags": `<think>..</think><action>..</action>`, which small models learn more easily.',
    ),
    maxSteps: integer(maxSteps, "Steps after which an episode is cut off, unreadable replies included; 1 to 10,000.", {
      min: 1,
      max: 10_000,
    }),
  }
}

/** Options that all card environments have. */
export type CardOptions = OptionsOf<ReturnType<typeof cardFields>>
export type CardSettings = Resolved<ReturnType<typeof cardFields>>
