import { pythonJson } from "../python-text.ts"
import type { Passage } from "./retriever.ts"

/**
 * Observation of a search in verl-agent's format: `<information>{"result": "Doc 1: …\nDoc 2: …\n"}</information>`, with the JSON as
 * Python's `json.dumps` writes it.
 */
export function informationOf(result: string): string {
  return `<information>{"result": ${pythonJson(result)}}</information>`
}

export function passagesText(passages: readonly Passage[]): string {
  if (passages.length === 0) return "No search results found."
  return passages.map(({ contents }, i) => `Doc ${i + 1}: ${contents.trim()}\n`).join("")
}

/** Result of a search from its observation, the inverse of `informationOf`; undefined if the observation is not one of a search. */
export function resultOf(observation: string): string | undefined {
  const payload = /^<information>(.*)<\/information>$/s.exec(observation)?.[1]
  if (payload === undefined) return undefined
  try {
    return (JSON.parse(payload) as { result: string }).result
  } catch {
    return undefined
  }
}
