import { drawState } from "../draw/draw.ts"
import { element } from "../element.ts"
import { longText } from "../long-text.ts"

/** Observation as a drawing, if possible, and as text; with `brief` the text is omitted if there is a drawing. */
export function observation(text: string, { first = 4000, brief = false } = {}): HTMLElement {
  const drawn = drawState(text, { small: true })
  return element(
    "div",
    { class: "observation" },
    drawn && element("div", { class: "picture" }, drawn),
    !(drawn && brief) && longText(text, first),
  )
}
