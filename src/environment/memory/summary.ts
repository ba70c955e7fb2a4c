import { integer } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import { askFields, askFor, opening } from "./ask.ts"
import type { Memory } from "./memory.ts"
import { formatTurns, recentTurns } from "./recent.ts"
import { titled } from "./tagged.ts"

export const summaryFields = {
  every: integer(1, "Steps after which the summary is written anew; those since then are shown as they were.", {
    min: 1,
  }),
  ...askFields,
}

/** Options of `summary`. */
export type SummaryOptions = OptionsOf<typeof summaryFields>

/**
 * A summary of progress in place of history, as STEP-HRL shows it (arXiv 2604.05808, its prompts; not its offline learning): the policy
 * folds what is new into the summary so far, in a call of its own before the action. The words of the prompt, and that the call is
 * learned from with the episode's credit, are our reading.
 */
export function summary(given: SummaryOptions = {}): Memory {
  const { every, ...options } = readOptions("summary", given, summaryFields)
  return {
    name: "summary",
    begin(context) {
      let [written, covered] = ["", 0]
      return {
        async tell(history, now) {
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
