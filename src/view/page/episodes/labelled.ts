import { element } from "../element.ts"

/** Part of a step with its label. */
export function labelled(label: string, content: Node): HTMLElement {
  return element("section", { class: `${label.toLowerCase()}-part` }, element("h4", {}, label), content)
}
