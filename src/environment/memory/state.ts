import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { Memory } from "./memory.ts"
import { lastNote, longestNote, titled } from "./tagged.ts"

export const stateBlockFields = { longest: longestNote }

/** Options of `stateBlock`. */
export type StateBlockOptions = OptionsOf<typeof stateBlockFields>

/**
 * A state block in place of history, after Constant-Context Skill Learning ("From History to State"): prompts stay as short as they
 * are at the first step, however long the episode. What the block holds and who writes it is not defined in public. Our reading: the
 * policy writes it anew in every reply, between `<state>` and `</state>`, and sees nothing else of the past; a reply without one
 * leaves it as it was.
 */
export function stateBlock(given: StateBlockOptions = {}): Memory {
  const { longest } = readOptions("stateBlock", given, stateBlockFields)
  return {
    name: "state",
    begin: () => ({
      tell: (history) =>
        [
          ...titled("The state, as you wrote it last:", lastNote(history, "state", longest)),
          "Beside your action, write inside <state> </state> all that you must know later: you will see nothing else of the past.",
        ].join("\n\n"),
    }),
  }
}
