import { integer } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import { askFields, askFor, opening } from "./ask.ts"
import type { PromptMemory } from "./memory.ts"
import { formatTurns, recentTurns } from "./recent.ts"
import { titled } from "./tagged.ts"

export const summaryFields = {
  every: integer(1, "Steps after which the summary is rewritten; later steps are shown in full.", {
    min: 1,
  }),
  ...askFields,
}

/** Options of `summaryMemory`. */
export type SummaryOptions = OptionsOf<typeof summaryFields>

/**
 * Prompt memory with a summary of progress in place of history, as in the prompts of STEP-HRL (arXiv 2604.05808; its offline learning is not
 * included). The policy adds the new steps to the summary in a separate call before the action. Our interpretation: the wording of the
 * prompt, and that the call is trained on with the credit of the episode.
 */
export function summaryMemory(given: SummaryOptions = {}): PromptMemory {
  const { every, ...options } = readOptions("summaryMemory", given, summaryFields)
  return {
    name: "summary",
    start(context) {
      let [written, covered] = ["", 0]
      return {
        async render(history, now) {
          const since = () => formatTurns(recentTurns(history, history.length - covered))
          if (history.length - covered >= every) {
            const paragraphs = [
              "You keep the summary of an agent's progress.",
              `It began with:\n${opening(history, now)}`,
              ...titled("The summary so far:", written),
              `What happened since:\n${since()}`,
              `What is observed now:\n${now.text}`,
              "Write the new summary, in a few sentences: what is done, what was found out, what is left to do.",
            ]
            written = await askFor(context, paragraphs, options)
            covered = history.length
          }
          return [...titled("Progress so far:", written), ...titled("Since then:", since())].join("\n\n")
        },
      }
    },
  }
}
