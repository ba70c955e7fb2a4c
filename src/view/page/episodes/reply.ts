import { visible } from "../../../util/visible.ts"
import type { RecordedStep } from "../../data/recorded.ts"
import { isSpecial, thoughts } from "../../data/thoughts.ts"
import { measures, type Scale, shade, tokenValue } from "../../data/token-values.ts"
import { element } from "../element.ts"
import { longText } from "../long-text.ts"
import { counted } from "../numbers.ts"

/** Tokens that are drawn at first, and with each press of the button for more: what a browser styles and lays out between two frames. */
const [first, more] = [500, 1000]

/**
 * A reply, each token with its shades as attributes: which of them colours it is the style sheet's, by `data-measure` around it. Arrow keys
 * go from token to token.
 */
export function replyTokens(step: RecordedStep, at: number, scale: Scale): HTMLElement {
  const thought = thoughts(step.reply)
  const root = element("div", {
    class: "reply",
    tabindex: 0,
    role: "group",
    "data-step": at,
    "aria-label": `Reply of step ${at + 1}, ${counted(step.reply.length, "token")}; arrow keys go through them`,
  })
  let drawn = 0
  const button = element("button", { type: "button", class: "more", click: () => show(more) })
  const show = (count: number) => {
    const tokens = new DocumentFragment()
    const end = Math.min(drawn + count, step.reply.length)
    for (; drawn < end; drawn++) tokens.append(token(step, drawn, scale, thought[drawn] === 1))
    root.insertBefore(tokens, button.parentNode === root ? button : null)
    const left = step.reply.length - drawn
    button.textContent = `Show ${left > more ? `${more.toLocaleString("en")} of ` : ""}${counted(left, "more token")}`
    if (left === 0) button.remove()
    else root.append(button)
  }
  show(first)
  return root
}

function token(step: RecordedStep, at: number, scale: Scale, thought: boolean): HTMLElement {
  const text = step.reply[at]!
  const special = isSpecial(text)
  const made = element("span", {
    class: `token${special ? " special" : ""}${thought ? " thought" : ""}`,
    "data-at": at,
    ...Object.fromEntries(
      measures.map((measure) => [`data-${measure}`, shade(tokenValue(step, at, measure), measure, scale)]),
    ),
  })
  // A line feed is shown before it breaks the line.
  for (const line of text.length > 2000 ? [] : text.split(/(?=\n)/)) {
    if (line.startsWith("\n")) made.append(element("span", { class: "feed" }, "\n"))
    made.append(visible(line.replace(/^\n/, "")))
  }
  if (text.length > 2000) made.append(longText(text, 2000))
  return made
}

/** The token that a key leads to from another, drawn if need be; undefined for other keys. */
export function tokenByKey(reply: HTMLElement, from: Element | null, key: string): HTMLElement | undefined {
  const tokens = reply.querySelectorAll<HTMLElement>(".token")
  const at = from && reply.contains(from) ? Number((from as HTMLElement).dataset.at) : -1
  const moves: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tokens.length - 1 }
  const to = moves[key]
  return to === undefined ? undefined : tokens[Math.max(0, Math.min(to, tokens.length - 1))]
}
