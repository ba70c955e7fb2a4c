import { integer } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import { askFields, askFor, opening } from "./ask.ts"
import type { Memory } from "./memory.ts"
import { formatTurns, historyField, recentTurns } from "./recent.ts"
import { titled } from "./tagged.ts"

export const planFields = {
  every: integer(0, "Steps after which the plan is looked over; 0: only where a reply holds <replan>.", { min: 0 }),
  length: historyField(2),
  ...askFields,
}

/** Options of `plan`. */
export type PlanOptions = OptionsOf<typeof planFields>

/**
 * A plan that adapts, after AdaPlan-H: coarse at first, and refined as the episode goes on. How it is refined is not defined in public.
 * Our reading: before its first action the policy writes a few goals, in a call of its own; a reply that holds `<replan>`, or every
 * so many steps, has it written anew in the light of what happened since: goals that are reached leave, the next is broken into steps.
 */
export function plan(given: PlanOptions = {}): Memory {
  const { every, length, ...options } = readOptions("plan", given, planFields)
  return {
    name: "plan",
    begin(context) {
      let [written, covered] = ["", -1]
      return {
        async tell(history, now) {
          const since = history.slice(Math.max(covered, 0))
          const wanted = since.some(({ reply }) => /<replan>/i.test(reply)) || (every > 0 && since.length >= every)
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
