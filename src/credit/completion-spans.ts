import { field } from "../options/field.ts"
import type { ResolvedOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"

const names = (fallback: readonly string[], help: string) =>
  field<readonly string[], string>(fallback, help, (value) =>
    Array.isArray(value) && value.every((name) => typeof name === "string" && /^\w+$/.test(name))
      ? undefined
      : "must be a list of names of tags, without brackets",
  )

/** Options for the tags that enclose parts of a completion. */
export const tagFields = {
  thinkTags: names(["think"], "Tags around thinking."),
  actionTags: names(["action", "answer"], "Tags around actions."),
  toolTags: names(["tool_call", "search", "sql"], "Tags around tool calls."),
}

/** Purpose of a part of a completion; "other" for text outside tags. */
export type SpanKind = "think" | "action" | "tool" | "other"

/** Names of tags by purpose, for `<think>…</think>` and the like. Letters only, case-insensitive. */
export type SpanTags = Readonly<Record<Exclude<SpanKind, "other">, readonly string[]>>

/** Characters start … end - 1 of a completion. */
export interface CompletionSpan {
  /** Kind of the text: reasoning, action, call of a tool, or other. */
  readonly kind: SpanKind
  /** Index of the first character in the completion. */
  readonly start: number
  /** Index after the last character. */
  readonly end: number
}

/**
 * Returns the tagged parts of a completion, including the tags, in order. A part ends with its own closing tag; other tags inside are
 * text. A part without a closing tag ends where the next part opens, or at the end. The opening tag of a thought may be missing, because
 * some chat templates put it into the prompt; the thought then begins with the completion. Any other closing tag without an opening tag is
 * text.
 *
 * @throws BAD_ARGUMENT for a tag with two purposes, or an invalid name
 */
export function completionSpans(text: string, tags: SpanTags): CompletionSpan[] {
  const kinds = kindsByName(tags)
  if (kinds.size === 0) return []
  const pattern = new RegExp(`<(/?)(${[...kinds.keys()].join("|")})>`, "gi")
  const found = [...text.matchAll(pattern)].map((match) => ({
    closes: match[1] === "/",
    name: match[2]!.toLowerCase(),
    start: match.index,
    end: match.index + match[0].length,
  }))
  const spans: CompletionSpan[] = []
  const push = (name: string, start: number, end: number) => spans.push({ kind: kinds.get(name)!, start, end })
  const firstThought = found.findIndex(({ name }) => kinds.get(name) === "think")
  let next = 0
  if (found[firstThought]?.closes) {
    push(found[firstThought].name, 0, found[firstThought].end)
    next = firstThought + 1
  }
  while (next < found.length) {
    const { closes, name, start } = found[next++]!
    if (closes) continue
    const closing = found.findIndex((tag, index) => index >= next && tag.closes && tag.name === name)
    if (closing >= 0) next = closing + 1
    else while (next < found.length && found[next]!.closes) next++
    push(name, start, closing >= 0 ? found[closing]!.end : (found[next]?.start ?? text.length))
  }
  return spans
}

/**
 * Returns the tags of the options.
 *
 * @throws BAD_ARGUMENT for a tag with two purposes
 */
export function tagsOf({
  thinkTags: think,
  actionTags: action,
  toolTags: tool,
}: ResolvedOf<typeof tagFields>): SpanTags {
  const tags = { think, action, tool }
  kindsByName(tags)
  return tags
}

/** Purpose of each token of a completion, by the position at which its text begins. A token without text has the purpose of the next token. */
export function tokenKinds(texts: readonly string[], tags: SpanTags): SpanKind[] {
  const spans = completionSpans(texts.join(""), tags)
  let [at, span] = [0, 0]
  return texts.map((text) => {
    while (span < spans.length && spans[span]!.end <= at) span++
    const within = spans[span]
    const kind = within && within.start <= at ? within.kind : "other"
    at += text.length
    return kind
  })
}

function kindsByName(tags: SpanTags): Map<string, Exclude<SpanKind, "other">> {
  const kinds = new Map<string, Exclude<SpanKind, "other">>()
  for (const kind of ["think", "action", "tool"] as const)
    for (const name of tags[kind].map((of) => of.toLowerCase())) {
      if (!/^\w+$/.test(name))
        throw new GigpoError(
          "BAD_ARGUMENT",
          `${JSON.stringify(name)} is not the name of a tag; give a name without brackets.`,
        )
      const other = kinds.get(name) ?? kind
      if (other !== kind)
        throw new GigpoError("BAD_ARGUMENT", `<${name}> is listed for ${other} and for ${kind}; list it once.`)
      kinds.set(name, kind)
    }
  return kinds
}
