import type { StateGraph } from "../../data/graph.ts"
import { element } from "../element.ts"
import { hundredths, short, signed } from "../numbers.ts"
import { advantageScale, type Colouring, colourings, type Scale } from "./scale.ts"

/** Legend of colours, sizes and widths with their values. */
export function legend(graph: StateGraph, colouring: Colouring, scale: Scale): HTMLElement {
  const returns = graph.discounted ? "Mean discounted return" : "Mean reward-to-go"
  const worth = advantageScale(graph)
  const { least, middle, most } = scale
  const numbers = [...new Set([least, middle, most])].map((value) => short(hundredths(value)))
  const sides = `${middle > least ? "bad " : ""}${middle < most ? "good " : ""}`
  const states = colouring === "return" ? ramp(sides, returns, numbers) : ramp("", colourings[colouring], numbers)
  return element(
    "div",
    { class: "legend", role: "group", "aria-label": "Legend" },
    states,
    ramp(
      "bad good",
      "Step advantage",
      [worth.least, 0, worth.most].map((value) => signed(hundredths(value))),
    ),
    element(
      "p",
      {},
      element("span", { class: "sizes", "aria-hidden": "true" }, element("i"), element("i"), element("i")),
      "size, width: frequency",
    ),
  )
}

function ramp(kind: string, name: string, numbers: readonly string[]): HTMLElement {
  return element(
    "p",
    {},
    element("span", {}, name),
    element(
      "span",
      { class: `ramp ${kind}` },
      ...numbers.map((number) => element("span", { class: "number" }, number)),
    ),
  )
}
