import { drawState } from "../draw/draw.ts"
import { element } from "../element.ts"
import { longText } from "../long-text.ts"

/** What was observed: drawn where somebody knows how, and written; in a `brief` one not written where it is drawn. */
export function observation(text: string, { first = 4000, brief = false } = {}): HTMLElement {
  const drawn = drawState(text, { small: true })
  return element(
    "div",
    { class: "observation" },
    drawn && element("div", { class: "picture" }, drawn),
    !(drawn && brief) && longText(text, first),
  )
}
