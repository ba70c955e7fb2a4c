import type { ActionEdge, StateGraph } from "../../data/graph.ts"
import { drawState } from "../draw/draw.ts"
import { element } from "../element.ts"
import { short, signed, tone } from "../numbers.ts"
import { actionLine } from "./action-names.ts"
import { titleOf } from "./boxes.ts"
import { byWorth } from "./state-panel.ts"

/** Number of rows that are added at once; a button adds more. */
const rowsAtOnce = 100

/** State graph as a table: states with their actions, the most visited first. */
export function stateTable(
  { nodes, edges }: StateGraph,
  names: readonly string[],
  choose: (node: number) => void,
): HTMLElement {
  const states = nodes.flatMap((node, at) => (node.kind === "state" ? [{ node, at }] : []))
  states.sort((a, b) => b.node.places.length - a.node.places.length || a.at - b.at)
  const own = new Map<number, ActionEdge[]>(nodes.map((_, at) => [at, []]))
  for (const edge of edges) own.get(edge.from)!.push(edge)
  const row = ({ node, at }: (typeof states)[number]) =>
    element(
      "tr",
      {},
      element(
        "th",
        { scope: "row" },
        element("button", { type: "button", class: "link-like", click: () => choose(at) }, titleOf(node)),
        drawState(node.observation, { small: true }) ?? element("span", { class: "mono faint" }, names[at]!),
      ),
      element("td", { class: "number" }, String(node.places.length)),
      element("td", { class: "number" }, String(node.episodes)),
      element("td", { class: "number" }, short(node.mean)),
      element("td", { class: "number" }, short(node.spread)),
      element(
        "td",
        {},
        element(
          "ul",
          {},
          ...own
            .get(at)!
            .sort(byWorth)
            .map(({ action, places, stepAdvantage, to }) =>
              element(
                "li",
                {},
                element("span", { class: "mono" }, actionLine(action)),
                ` ×${places.length} `,
                element("span", { class: `number ${tone(stepAdvantage)}` }, signed(stepAdvantage)),
                element("span", { class: "faint" }, ` to ${titleOf(nodes[to]!)}`),
              ),
            ),
        ),
      ),
    )
  const heads = ["State", "Visits", "Episodes", "Mean return", "Standard deviation", "Actions with step advantage"]
  const body = element("tbody")
  const box = element(
    "div",
    { class: "rows", tabindex: 0, role: "region", "aria-label": "States" },
    element(
      "table",
      { class: "ruled" },
      element("caption", {}, "States by number of visits"),
      element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
      body,
    ),
  )
  let shown = 0
  const more = element("button", { type: "button", click: () => show() }, "Show more states")
  const show = () => {
    body.append(...states.slice(shown, shown + rowsAtOnce).map(row))
    shown += rowsAtOnce
    if (shown < states.length) box.append(more)
    else more.remove()
  }
  show()
  return box
}
