/** What a reply of the form `<think>…</think><tag>…</tag>` says. */
export interface TaggedReply {
  /** The thought; `undefined` where none was closed before the answer. */
  readonly thought: string | undefined
  /** What stands between the first `<tag>` after the thought and its `</tag>`; `undefined` where there is none. */
  readonly answer: string | undefined
}

/**
 * Reads a tagged reply, whatever the case of its tags. The thought is optional, and its opening tag too, because some
 * chat templates open the thought in the prompt. Tags inside the thought are not answers, and a thought that comes
 * after the answer is ignored. Never throws; takes time linear in the reply.
 *
 * @param tag the answer's tag, letters only, e.g. "action"
 */
export function readTagged(reply: string, tag: string): TaggedReply {
  const thoughtEnd = find(reply, "</think>")
  const thoughtStart = find(reply.slice(0, Math.max(thoughtEnd, 0)), "<think>")
  const firstAnswer = find(reply, `<${tag}>`)
  const answeredFirst = thoughtStart >= 0 && firstAnswer >= 0 && firstAnswer < thoughtStart
  if (thoughtEnd < 0 || answeredFirst) return { thought: undefined, answer: between(reply, tag) }
  return {
    thought: reply.slice(thoughtStart < 0 ? 0 : thoughtStart + "<think>".length, thoughtEnd).trim(),
    answer: between(reply.slice(thoughtEnd), tag),
  }
}

/** A reply without its thought: what stands after the last `</think>`, all of it where there is none. */
export function withoutThought(reply: string): string {
  return (reply.split(/<\/think>/i).at(-1) ?? "").trim()
}

/** The first of these lower-case words, in the order of the list, that the text contains. */
export function firstContained<Word extends string>(text: string, words: readonly Word[]): Word | undefined {
  const lower = text.toLowerCase()
  return words.find((word) => lower.includes(word))
}

function between(text: string, tag: string): string | undefined {
  const open = find(text, `<${tag}>`)
  if (open < 0) return undefined
  const rest = text.slice(open + tag.length + 2)
  const close = find(rest, `</${tag}>`)
  return close < 0 ? undefined : rest.slice(0, close).trim()
}

// Not indexOf on toLowerCase(): lower-casing can change the length of a text, and with it every index.
function find(text: string, literal: string): number {
  return text.search(new RegExp(literal, "i"))
}
