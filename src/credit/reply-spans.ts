import { field } from "../options/field.ts"
import type { Resolved } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"

const names = (fallback: readonly string[], help: string) =>
  field<readonly string[], string>(fallback, help, (value) =>
    Array.isArray(value) && value.every((name) => typeof name === "string" && /^\w+$/.test(name))
      ? undefined
      : "must be a list of names of tags, without brackets",
  )

/** Which tags parts of a reply stand between. */
export const tagFields = {
  thinkTags: names(["think"], "Tags around thinking."),
  actionTags: names(["action", "answer"], "Tags around actions."),
  toolTags: names(["tool_call", "search", "sql"], "Tags around tool calls."),
}

/** What a part of a reply is for; "other" is what stands between them. */
export type SpanKind = "think" | "action" | "tool" | "other"

/** Names of tags, letters only and of any case, by what stands between them: `<think>…</think>`. */
export type SpanTags = Readonly<Record<Exclude<SpanKind, "other">, readonly string[]>>

/** Characters start … end - 1 of a reply. */
export interface ReplySpan {
  readonly kind: SpanKind
  readonly start: number
  readonly end: number
}

/**
 * The tagged parts of a reply, tags included, in order. A part ends with its own closing tag, and other tags within it are text; one
 * that is not closed goes to where the next one opens, or to the end. A thought may lack its opening tag, which some chat templates put
 * into the prompt: it begins with the reply then. What is closed and was never opened is text.
 *
 * @throws BAD_ARGUMENT for a tag of two kinds, or a name that is none
 */
export function replySpans(text: string, tags: SpanTags): ReplySpan[] {
  const kinds = kindsByName(tags)
  if (kinds.size === 0) return []
  const pattern = new RegExp(`<(/?)(${[...kinds.keys()].join("|")})>`, "gi")
  const found = [...text.matchAll(pattern)].map((match) => ({
    closes: match[1] === "/",
    name: match[2]!.toLowerCase(),
    start: match.index,
    end: match.index + match[0].length,
  }))
  const spans: ReplySpan[] = []
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

/** @throws BAD_ARGUMENT for a tag of two kinds */
export function tagsOf({ thinkTags: think, actionTags: action, toolTags: tool }: Resolved<typeof tagFields>): SpanTags {
  const tags = { think, action, tool }
  kindsByName(tags)
  return tags
}

/** What each token of a reply is for, by where the text that it adds begins. Of one that adds none, where the next one's does. */
export function tokenKinds(texts: readonly string[], tags: SpanTags): SpanKind[] {
  const spans = replySpans(texts.join(""), tags)
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
