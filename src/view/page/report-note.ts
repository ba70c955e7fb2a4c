import { visible } from "../../util/visible.ts"
import { evaluationsOf, type Kept, type RunInfo } from "../data/source.ts"
import { element } from "./element.ts"
import { writeRoute } from "./view.ts"

/** Footer of a report: time of creation, and links to the groups whose episodes are included in full. */
export function reportNote({ time, recorded, iterations, groups }: Kept, runs: readonly RunInfo[]): HTMLElement {
  const made = `Report of ${new Date(time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })}.`
  const footer = element("footer", { class: "report-note" }, element("p", {}, made))
  const count = (number: number) => number.toLocaleString("en-US")
  if (iterations)
    footer.append(element("p", {}, `Curves have ${count(iterations.shown)} of ${count(iterations.all)} iterations.`))
  if (recorded === 0) return footer
  const details = element(
    "details",
    {},
    element("summary", {}, `${count(groups.length)} of ${count(recorded)} groups of episodes are included in full`),
    element("p", {}, "Other episodes are included with outcome, return, steps and tokens only."),
  )
  const parts = runs.flatMap(({ id, name }) => [
    { id, name, view: "graph" },
    { id: evaluationsOf(id), name: `${name}, evaluations`, view: "episodes" },
  ])
  for (const { id, name, view } of parts) {
    const links = groups
      .filter(({ run }) => run === id)
      .sort((a, b) => a.iteration - b.iteration || a.group - b.group)
      .map(({ iteration, group }) => {
        const path = [view, id, String(iteration), String(group)]
        const text = `Iteration ${iteration}, group ${group}`
        // The linked group is shown at the top of the page.
        const up = () => scrollTo(0, 0)
        return element("li", {}, element("a", { href: writeRoute({ path, query: {} }), click: up }, text))
      })
    if (links.length > 0) details.append(element("h2", {}, visible(name)), element("ul", {}, ...links))
  }
  footer.append(details)
  return footer
}
