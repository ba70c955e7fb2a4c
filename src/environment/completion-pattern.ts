import type { Thinking } from "./agent.ts"

// Regular expressions of completions for constrained decoding (`Environment.completionPattern`). Each of them matches only completions that
// the parser of its environment accepts as valid.

/** Reasoning without `<`, so that it ends at `</think>`, and without CJK ideographs, which `readAction` rejects. */
const thought = "<think>[^<\\u4e00-\\u9fff]+</think>"

const thoughts: Readonly<Record<Thinking, string>> = { required: thought, optional: `(?:${thought})?`, off: "" }

/** Pattern of a completion: reasoning as `thinking` demands it, then `answer`. */
export function completionPattern(thinking: Thinking, answer: string): string {
  return `${thoughts[thinking]}${answer}`
}

/** Pattern of an action in its tags: one of `actions`, or any text without `<` if they are unknown. */
export function actionPattern(actions: readonly string[] | undefined): string {
  return `<action>${actions && actions.length > 0 ? anyOf(actions) : "[^<\\u4e00-\\u9fff]+"}</action>`
}

/** Pattern of any text without tags inside one of several tags. `<` may be followed by whatever does not begin a tag. */
export function taggedPattern(tags: readonly string[]): string {
  return `(?:${tags.map((tag) => `<${tag}>(?:[^<]|<[^<A-Za-z/])+</${tag}>`).join("|")})`
}

/** Pattern of one of several texts. */
export function anyOf(texts: readonly string[]): string {
  return `(?:${texts.map(escapePattern).join("|")})`
}

/** Pattern of a text, with the special characters of regular expressions escaped. */
function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")
}
