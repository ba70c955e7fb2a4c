import { type AgentOptions, agentFields, historyField } from "../agent.ts"
import { type Fields, oneOf, whole } from "../options.ts"

/** One deal. The seed decides everything, cards not yet drawn included. */
export interface CardTask {
  /** A whole number from 0 to 2^53 - 1. Of verl-agent's environments, those that are seeded alike deal the same. */
  readonly seed: number
}

/** What the four card environments have in common. History is 0 by default: a state tells everything. */
export interface CardOptions extends AgentOptions<CardTask> {
  /**
   * Whose rewards. "verl-agent" (default) punishes nothing but a wrong way on the number line; "rl4vlm", the original, takes 1
   * for refused numbers, for formulas that fail and for lost hands.
   */
  readonly reward?: "verl-agent" | "rl4vlm"
  /**
   * How the model replies. "json" (default): `{"thoughts": "..", "action": ".."}`, read as verl-agent reads it; `thinking`
   * says nothing to that. "tags": `<think>..</think><action>..</action>`, which small models learn more easily.
   */
  readonly reply?: "json" | "tags"
  /** Steps after which an episode is cut off, unreadable replies included; 1 to 10,000. */
  readonly maxSteps?: number
}

/** The fields of `CardOptions`. */
export function cardFields(maxSteps: number): Fields<CardOptions> {
  return {
    ...agentFields<CardTask>(),
    history: historyField(0),
    reward: oneOf("verl-agent", ["verl-agent", "rl4vlm"]),
    reply: oneOf("json", ["json", "tags"]),
    maxSteps: whole(maxSteps, 1, 10_000),
  }
}
