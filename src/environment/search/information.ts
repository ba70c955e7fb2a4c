import { pythonJson } from "../python-text.ts"
import type { Passage } from "./retriever.ts"

/**
 * What a search shows, as verl-agent writes it: `<information>{"result": "Doc 1: …\nDoc 2: …\n"}</information>`, the JSON in the
 * form of Python's `json.dumps`.
 */
export function informationOf(result: string): string {
  return `<information>{"result": ${pythonJson(result)}}</information>`
}

export function passagesText(passages: readonly Passage[]): string {
  if (passages.length === 0) return "No search results found."
  return passages.map(({ contents }, i) => `Doc ${i + 1}: ${contents.trim()}\n`).join("")
}

/** The result in an observation, if it is one: the inverse of `informationOf`. */
export function resultOf(observation: string): string | undefined {
  const payload = /^<information>(.*)<\/information>$/s.exec(observation)?.[1]
  if (payload === undefined) return undefined
  try {
    return (JSON.parse(payload) as { result: string }).result
  } catch {
    return undefined
  }
}
