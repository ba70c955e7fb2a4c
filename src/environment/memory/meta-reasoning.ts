import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { PromptMemory } from "./memory.ts"
import { formatTurns, historyField, recentTurns } from "./recent.ts"
import { lastNote, longestNote, titled } from "./tagged.ts"

export const metaReasoningFields = { history: historyField(2), maxCharacters: longestNote }

/** Options of `metaReasoningMemory`. */
export type MetaReasoningOptions = OptionsOf<typeof metaReasoningFields>

const kinds = `Before the action, reason in one short sentence inside exactly one of these pairs of tags:
<planning> </planning> a plan of the whole task, or a new one where the last is wrong: its steps in order
<explore> </explore> what else could be tried, where something is missing or unexpected
<reflection> </reflection> why the last actions failed, and what to do instead
<monitor> </monitor> the current sub-goal and the next action, where all is as expected`

/**
 * Prompt memory of RLVMR: the last steps and the last plan, with the request to mark each reasoning as planning, exploration, reflection or
 * monitoring. The tags are those of the authors' code (zzjweb/digitalhuman); the wording is ours. For the estimator `rlvmr` with the hook
 * `reasoning-rewards`.
 */
export function metaReasoningMemory(given: MetaReasoningOptions = {}): PromptMemory {
  const { history: length, maxCharacters } = readOptions("metaReasoningMemory", given, metaReasoningFields)
  return {
    name: "meta-reasoning",
    notes: true,
    start: () => ({
      render: (history) =>
        [
          ...titled("Your last steps:", formatTurns(recentTurns(history, length))),
          ...titled("Your plan, to which you keep:", lastNote(history, "planning", maxCharacters)),
          kinds,
        ].join("\n\n"),
    }),
  }
}
