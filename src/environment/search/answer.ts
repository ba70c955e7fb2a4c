import { splitWords } from "../python-text.ts"

const punctuation = /[!-/:-@[-`{-~]/g
const articles = /(?<![\p{L}\p{N}_])(?:a|an|the)(?![\p{L}\p{N}_])/gu

/** Normalizes an answer as SQuAD does: lower case, no ASCII punctuation, no English articles, single spaces. */
export function normalizeAnswer(text: string): string {
  return splitWords(text.toLowerCase().replace(punctuation, "").replace(articles, " ")).join(" ")
}

/** Comparison of normalized answers. "em": equal to one of the targets. "subem": contains one of the targets. */
export type Match = "em" | "subem"

export function isRight(answer: string, targets: readonly string[], match: Match): boolean {
  const given = normalizeAnswer(answer)
  return targets.map(normalizeAnswer).some((target) => (match === "em" ? given === target : given.includes(target)))
}

/** Trimmed content of the last answer block of a conversation. */
export function lastAnswer(conversation: string): string | undefined {
  let answer: string | undefined
  // No regular expression: it would take quadratic time on many opening tags without a closing one.
  for (let from = 0; ; ) {
    const open = conversation.indexOf("<answer>", from)
    const close = open < 0 ? -1 : conversation.indexOf("</answer>", open)
    if (close < 0) return answer
    answer = conversation.slice(open + "<answer>".length, close).trim()
    from = close + "</answer>".length
  }
}
