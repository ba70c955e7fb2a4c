import { visible } from "../../util/visible.ts"
import { specialToken } from "../data/thoughts.ts"
import { element } from "./element.ts"
import { counted } from "./numbers.ts"

export interface TextPart {
  readonly text: string
  /** Stands out from the parts around it. */
  readonly marked?: boolean
}

/** Characters that one press of the button adds: what a browser lays out between two frames, on one line too. */
const more = 20_000

/**
 * Text of a model or an environment, what cannot be seen in it as escapes, special tokens as such; cut after `first` characters, with a
 * button for more.
 */
export function longText(text: string | readonly TextPart[], first = 4000): HTMLElement {
  const parts = typeof text === "string" ? [{ text }] : text
  const shown = element("span", { class: "text" })
  let left = parts.reduce((sum, part) => sum + part.text.length, 0)
  let [place, offset] = [0, 0]
  const button = element("button", { type: "button", class: "more", click: () => show(more) })
  const show = (characters: number) => {
    for (let room = Math.min(characters, left); room > 0; ) {
      const part = parts[place]!
      const end = whole(part.text, Math.min(offset + room, part.text.length))
      shown.append(drawn(part.text.slice(offset, end), part.marked ?? false))
      room -= end - offset
      left -= end - offset
      offset = end === part.text.length ? 0 : end
      if (offset === 0) place++
    }
    button.textContent = `Show ${left > more ? `${more.toLocaleString("en")} of ` : ""}${counted(left, "more character")}`
    if (left <= 0) button.remove()
  }
  const made = element("span", { class: "long" }, shown)
  // A few characters more are shorter than the button for them.
  show(left <= first * 1.25 ? left : first)
  if (left > 0) made.append(button)
  return made
}

/** No character is cut in two. */
function whole(text: string, end: number): number {
  return end < text.length && /[\ud800-\udbff]/.test(text[end - 1]!) && /[\udc00-\udfff]/.test(text[end]!)
    ? end + 1
    : end
}

function drawn(text: string, marked: boolean): Node {
  const pieces = element(marked ? "mark" : "span")
  let start = 0
  for (const { index, 0: special } of text.matchAll(specialToken)) {
    pieces.append(visible(text.slice(start, index)), element("span", { class: "special" }, special))
    start = index + special.length
  }
  pieces.append(visible(text.slice(start)))
  return pieces
}

/** Text in which spaces at the ends count: an action. They are shown, and not copied. */
export function edgedText(text: string, first = 200): HTMLElement {
  const made = longText(text, first)
  if (/^\s/.test(text)) made.classList.add("space-before")
  if (/\s$/.test(text)) made.classList.add("space-after")
  if (text === "") made.classList.add("nothing")
  return made
}
