import { oneOf } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { PromptMemory } from "./memory.ts"
import { lastNote, longestNote, titled } from "./tagged.ts"

export const beliefStateFields = {
  domain: oneOf(
    "household",
    ["household", "shop"],
    "What beliefs are about: a household (ALFWorld), or a shop (WebShop).",
  ),
  maxCharacters: longestNote,
}

/** Options of `beliefStateMemory`. */
export type BeliefStateOptions = OptionsOf<typeof beliefStateFields>

const task = (phases: string, target: string) =>
  `"task": { "phase": "<${phases}>", "target": "<${target}>", "subgoal": "<one sentence>" }, ` +
  '"prediction": "If I <action>, I expect <observation>." }'

const household =
  '{ "state": { "objects": { "<object>": "<place, in_hand or unknown>" }, "states": { "<object>": "<hot, cold or clean>" }, ' +
  '"visited": ["<receptacle>"], "unvisited_candidates": ["<receptacle>"] }, ' +
  task("find, pickup, transform, place or done", "object")

const shop =
  '{ "state": { "target": { "<attribute>": "<value>" }, "confirmed": { "<attribute>": "<value that was seen>" }, ' +
  '"unconfirmed": ["<attribute>"], "product_id": "<product, if there is one>" }, ' +
  task("searching, browsing, viewing, selecting, buying or done", "product")

const schemas = { household, shop }

/**
 * Prompt memory in which the previous belief is the only history, as in ReBel (arXiv 2605.20061). With every action the policy writes its belief
 * as JSON between <belief> tags: places and states of objects and visited receptacles, or in a shop the wanted and the seen attributes, with
 * phase and target of the task and what it expects. The fields are those of the authors; the wording is ours. For the estimator `rebel` with the hook `belief-rewards`.
 */
export function beliefStateMemory(given: BeliefStateOptions = {}): PromptMemory {
  const { domain, maxCharacters } = readOptions("beliefStateMemory", given, beliefStateFields)
  return {
    name: "belief-state",
    notes: true,
    start: () => ({
      render: (history) =>
        [
          ...titled("Your previous belief:", lastNote(history, "belief", maxCharacters)),
          `First write your belief, brought up to date with what you observe now, as JSON inside <belief> </belief>:\n${schemas[domain]}`,
          "Then reason from it, and act.",
        ].join("\n\n"),
    }),
  }
}
