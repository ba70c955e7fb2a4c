import { advantageOf } from "../../data/earned.ts"
import type { ActionEdge, StateGraph, StepPlace } from "../../data/graph.ts"
import type { RecordedGroup } from "../../data/recorded.ts"
import { drawState } from "../draw/draw.ts"
import { element } from "../element.ts"
import { longText } from "../long-text.ts"
import { counted, short, signed, tone } from "../numbers.ts"
import { writeRoute } from "../view.ts"
import { actionLine } from "./action-names.ts"
import { titleOf } from "./boxes.ts"

/** Maximum number of shown steps of a state. */
const mostRows = 200

/** Panel of a node: its observation, the actions with their advantages, and all steps. */
export function statePanel(
  run: string,
  group: RecordedGroup,
  graph: StateGraph,
  at: number,
  tell: { readonly close: () => void; readonly choose: (node: number) => void },
): HTMLElement {
  const node = graph.nodes[at]!
  const heading = titleOf(node)
  const facts: readonly (readonly [string, string])[] =
    node.kind === "state"
      ? [
          ["Visits", String(node.places.length)],
          ["Episodes", String(node.episodes)],
          ["Mean return", `${short(node.mean)} ± ${short(node.spread)}`],
        ]
      : [
          ["Episodes", String(node.members.length)],
          ["Mean return", short(node.mean)],
        ]
  const close = element("button", { type: "button", class: "close", "aria-label": "Close", click: tell.close }, "✕")
  const drawn = node.observation === undefined ? undefined : drawState(node.observation)
  return element(
    "section",
    {
      class: "standing",
      "aria-label": heading,
      tabindex: -1,
      keydown: (event) => {
        if ((event as KeyboardEvent).key === "Escape") tell.close()
      },
    },
    element("div", { class: "title" }, element("h3", {}, heading), close),
    drawn && element("div", { class: "large" }, drawn),
    node.observation !== undefined &&
      element(
        "div",
        { class: "observation", tabindex: 0, role: "region", "aria-label": "Observation" },
        longText(node.observation, 1000),
      ),
    element("dl", {}, ...facts.flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)])),
    ...(node.kind === "state" ? [actions(graph, at, tell.choose), steps(run, group, node.places)] : []),
  )
}

/** Actions of a state, those with the highest step advantage first. */
function actions(graph: StateGraph, at: number, choose: (node: number) => void): HTMLElement {
  const own = graph.edges.filter(({ from }) => from === at).sort(byWorth)
  const row = ({ action, places, stepAdvantage, to }: ActionEdge) =>
    element(
      "tr",
      {},
      element("td", { class: "mono" }, actionLine(action)),
      element("td", { class: "number" }, `×${places.length}`),
      element("td", { class: `number ${tone(stepAdvantage)}` }, signed(stepAdvantage)),
      element(
        "td",
        {},
        element("button", { type: "button", class: "link-like", click: () => choose(to) }, titleOf(graph.nodes[to]!)),
      ),
    )
  return table("Actions in this state", ["Action", "Count", "Step advantage", "Next state"], own.map(row))
}

function steps(run: string, group: RecordedGroup, places: readonly StepPlace[]): HTMLElement {
  const rows = places.slice(0, mostRows).map(({ member, step }) => {
    const recorded = group.episodes.find((episode) => episode.member === member)!.steps[step]!
    const path = ["episodes", run, String(group.iteration), String(group.group), String(member)]
    return element(
      "tr",
      {},
      element(
        "td",
        {},
        element("a", { href: writeRoute({ path, query: { step: String(step) } }) }, `${member} · ${step + 1}`),
      ),
      element("td", { class: "mono" }, actionLine(recorded.action)),
      element("td", { class: "number" }, short(recorded.discountedReturn)),
      ...[recorded.stepAdvantage, recorded.episodeAdvantage, advantageOf(recorded)].map((value) =>
        element("td", { class: `number ${tone(value)}` }, signed(value)),
      ),
    )
  })
  const heads = ["Episode · step", "Action", "Discounted return", "Step advantage", "Episode advantage", "Advantage"]
  const left = places.length - rows.length
  const made = table("Steps in this state", heads, rows)
  if (left > 0) made.append(element("p", { class: "faint" }, `and ${counted(left, "more step")}`))
  return made
}

function table(caption: string, heads: readonly string[], rows: readonly HTMLElement[]): HTMLElement {
  return element(
    "div",
    { class: "rows", tabindex: 0, role: "region", "aria-label": caption },
    element(
      "table",
      { class: "ruled" },
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
      element("tbody", {}, ...rows),
    ),
  )
}

export function byWorth(a: ActionEdge, b: ActionEdge): number {
  return (b.stepAdvantage ?? 0) - (a.stepAdvantage ?? 0) || b.places.length - a.places.length
}
