import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { PromptMemory } from "./memory.ts"
import { lastNote, longestNote, titled } from "./tagged.ts"

export const stateBlockFields = { maxCharacters: longestNote }

/** Options of `stateBlockMemory`. */
export type StateBlockOptions = OptionsOf<typeof stateBlockFields>

/**
 * Prompt memory with a state block in place of history, after Constant-Context Skill Learning ("From History to State"), so that prompts do not
 * grow with the episode. The content and the author of the block are not published. Our interpretation: the policy rewrites the block in
 * every completion, between `<state>` and `</state>`, and sees nothing else of the history. A completion without a block keeps the last
 * one.
 */
export function stateBlockMemory(given: StateBlockOptions = {}): PromptMemory {
  const { maxCharacters } = readOptions("stateBlockMemory", given, stateBlockFields)
  return {
    name: "state",
    notes: true,
    start: () => ({
      render: (history) =>
        [
          ...titled("The state, as you wrote it last:", lastNote(history, "state", maxCharacters)),
          "Beside your action, write inside <state> </state> all that you must know later: you will see nothing else of the past.",
        ].join("\n\n"),
    }),
  }
}
