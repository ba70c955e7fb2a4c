import type { Observation, Turn } from "../../environment.ts"
import { resultOf } from "../information.ts"
import { queryOf } from "../projection.ts"
import type { SearchTask } from "../questions.ts"
import { readFact } from "./world.ts"

/**
 * Answers a question about the embedded world from what searches have shown: looks for the entity asked about, reads where the
 * path leads next, looks for that, and answers with the last fact. `undefined` where a search did not show what it was for.
 */
export function worldExpert(task: SearchTask, history: readonly Turn[], now: Observation): string | undefined {
  const passages = [...history.slice(1).map((turn) => turn.observation), now].flatMap(shownPassages)
  let at = task.subject!
  for (const relation of task.path!) {
    const text = passages.find((passage) => passage.title === at)?.text
    // Spaces inside the tags: most tokenizers then see the name as they saw it in the question.
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
