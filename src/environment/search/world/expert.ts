import type { Observation, PastStep } from "../../environment.ts"
import { resultOf } from "../information.ts"
import { queryOf } from "../projection.ts"
import type { SearchTask } from "../questions.ts"
import { readFact } from "./world.ts"

/**
 * Expert completion for a question about the embedded world: searches for the subject, then for each entity along the path, and answers
 * with the last fact. `undefined` if a search did not find its entity.
 */
export function worldExpert(task: SearchTask, history: readonly PastStep[], now: Observation): string | undefined {
  const passages = [...history.slice(1).map((turn) => turn.observation), now].flatMap(shownPassages)
  let at = task.subject!
  for (const relation of task.path!) {
    const text = passages.find((passage) => passage.title === at)?.text
    // With spaces inside the tags, most tokenizers encode the name as in the question.
    if (text === undefined)
      return history.some((turn) => queryOf(turn.action) === at) ? undefined : `<search> ${at} </search>`
    const value = readFact(text, at, relation)
    if (value === undefined) return undefined
    at = value
  }
  return `<answer> ${at} </answer>`
}

function shownPassages({ text }: Observation): { title: string; text: string }[] {
  const found = (resultOf(text) ?? "").matchAll(/^Doc \d+: "(.*)"\n(.*)$/gm)
  return Array.from(found, ([, title, body]) => ({ title: title!, text: body! }))
}
