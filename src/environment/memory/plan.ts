import { integer } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import { askFields, askFor, opening } from "./ask.ts"
import type { PromptMemory } from "./memory.ts"
import { formatTurns, historyField, recentTurns } from "./recent.ts"
import { titled } from "./tagged.ts"

export const planFields = {
  every: integer(0, "Steps after which the plan is rewritten; 0: only after a completion with <replan>.", { min: 0 }),
  history: historyField(2),
  ...askFields,
}

/** Options of `planMemory`. */
export type PlanOptions = OptionsOf<typeof planFields>

/**
 * Prompt memory with an adaptive plan, after AdaPlan-H: the plan is coarse at first and refined during the episode. The refinement is not
 * published. Our interpretation: before its first action the policy writes a few goals in a separate call. The plan is rewritten after a
 * completion with `<replan>`, and after every `every` steps. Each time the policy sees the steps since the last version, removes goals that
 * were reached and breaks the next goal into steps.
 */
export function planMemory(given: PlanOptions = {}): PromptMemory {
  const { every, history: length, ...options } = readOptions("planMemory", given, planFields)
  return {
    name: "plan",
    start(context) {
      let [written, covered] = ["", -1]
      return {
        async render(history, now) {
          const since = history.slice(Math.max(covered, 0))
          const wanted =
            since.some(({ completion }) => /<replan>/i.test(completion)) || (every > 0 && since.length >= every)
          if (covered < 0 || wanted) {
            const paragraphs = [
              "You plan for an agent.",
              `It began with:\n${opening(history, now)}`,
              ...titled("The plan so far:", written),
              ...titled("What happened since:", formatTurns(recentTurns(history, since.length))),
              ...(history.length > 0 ? [`What is observed now:\n${now.text}`] : []),
              covered < 0
                ? "Write a coarse plan: a few goals on the way, one a line."
                : "Write the plan anew: leave out what is reached, break the next goal into steps, keep the others coarse.",
            ]
            written = await askFor(context, paragraphs, options)
            covered = history.length
          }
          const past = formatTurns(recentTurns(history, length))
          const offer = "Where the plan fits no longer, write <replan> beside your action."
          return [...titled("Your plan:", written), ...titled("Your last steps:", past), offer].join("\n\n")
        },
      }
    },
  }
}
