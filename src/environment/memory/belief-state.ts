import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { Memory } from "./memory.ts"
import { lastNote, longestNote, titled } from "./tagged.ts"

export const beliefStateFields = { longest: longestNote }

/** Options of `beliefState`. */
export type BeliefStateOptions = OptionsOf<typeof beliefStateFields>

const schema =
  '{ "state": { "objects": { "<object>": "<place, in_hand or unknown>" }, "states": { "<object>": "<hot, cold or clean>" }, ' +
  '"visited": ["<receptacle>"], "unvisited_candidates": ["<receptacle>"] }, ' +
  '"task": { "phase": "<find, pickup, transform, place or done>", "target": "<object>", "subgoal": "<one sentence>" }, ' +
  '"prediction": "If I <action>, I expect <observation>." }'

/**
 * Memory in which the previous belief is the only history, as in ReBel (arXiv 2605.20061). With every action the policy writes its belief
 * as JSON between <belief> tags: places and states of objects, visited receptacles, phase and target of the task, and what it expects.
 * The fields are those of the authors; the wording is ours. For the estimator `rebel` with the hook `belief-rewards`.
 */
export function beliefState(given: BeliefStateOptions = {}): Memory {
  const { longest } = readOptions("beliefState", given, beliefStateFields)
  return {
    name: "belief-state",
    notes: true,
    begin: () => ({
      tell: (history) =>
        [
          ...titled("Your previous belief:", lastNote(history, "belief", longest)),
          `First write your belief, brought up to date with what you observe now, as JSON inside <belief> </belief>:\n${schema}`,
          "Then reason from it, and act.",
        ].join("\n\n"),
    }),
  }
}
