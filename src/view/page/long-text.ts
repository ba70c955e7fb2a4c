import { visible } from "../../util/visible.ts"
import { specialToken } from "../data/thoughts.ts"
import { element } from "./element.ts"
import { counted } from "./numbers.ts"

export interface TextPart {
  readonly text: string
  /** Whether the part is highlighted. */
  readonly marked?: boolean
}

/** Number of characters that one press of the button adds. A browser lays out this number within a frame, even on a single line. */
const more = 20_000

/**
 * Text of a model or environment. Invisible characters are shown as escapes, special tokens are marked. Cut after `first` characters, with
 * a button for more.
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
  // A short rest is shown, because it takes no more space than the button.
  show(left <= first * 1.25 ? left : first)
  if (left > 0) made.append(button)
  return made
}

/** End of a slice, moved so that no surrogate pair is split. */
function whole(text: string, end: number): number {
  return end < text.length && /[\ud800-\udbff]/.test(text[end - 1]!) && /[\udc00-\udfff]/.test(text[end]!)
    ? end + 1
    : end
}

function drawn(text: string, marked: boolean): Node {
  const pieces = element(marked ? "mark" : "span")
  let start = 0
  for (const { index, 0: special } of text.matchAll(specialToken)) {
    pieces.append(readable(text.slice(start, index)), element("span", { class: "special" }, special))
    start = index + special.length
  }
  pieces.append(readable(text.slice(start)))
  return pieces
}

/** Visible text in which tabs stay, and sequences that colour the text of a terminal are left out. */
function readable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the begin of such a sequence
  const plain = text.replaceAll(/\u001b\[[\d;:]*m/g, "")
  return plain.split("\t").map(visible).join("\t")
}

/** Text whose leading and trailing spaces matter, such as an action. Marks for these spaces are shown, and not copied. */
export function edgedText(text: string, first = 200): HTMLElement {
  const made = longText(text, first)
  if (/^\s/.test(text)) made.classList.add("space-before")
  if (/\s$/.test(text)) made.classList.add("space-after")
  if (text === "") made.classList.add("nothing")
  return made
}
