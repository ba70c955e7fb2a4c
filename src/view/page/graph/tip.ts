import type { StateGraph } from "../../data/graph.ts"
import { element } from "../element.ts"
import { counted, short, signed, tone } from "../numbers.ts"
import { actionLine } from "./action-names.ts"
import { titleOf } from "./boxes.ts"
import { oneLine } from "./short-names.ts"
import { byWorth } from "./state-panel.ts"

const longestText = 160
const mostActions = 4

/** Tooltip of a node that is pointed at or focused: observation, mean return and actions. */
export function tipOf({ nodes, edges }: StateGraph, at: number): readonly Node[] {
  const node = nodes[at]!
  const own = edges.filter(({ from }) => from === at).sort(byWorth)
  const title =
    node.kind === "end"
      ? `${titleOf(node)}, ${counted(node.members.length, "episode")}`
      : `${titleOf(node)}: ${counted(node.places.length, "visit")}, mean return ${short(node.mean)} ± ${short(node.spread)}`
  return [
    element("strong", {}, title),
    element("span", { class: "mono" }, oneLine(node.observation ?? "", longestText)),
    ...own
      .slice(0, mostActions)
      .map(({ action, places, stepAdvantage }) =>
        element(
          "span",
          {},
          element("span", { class: "mono" }, actionLine(action, 48)),
          ` ×${places.length} `,
          element("b", { class: tone(stepAdvantage) }, signed(stepAdvantage)),
        ),
      ),
    ...(own.length > mostActions ? [element("span", { class: "faint" }, `and ${own.length - mostActions} more`)] : []),
  ]
}
