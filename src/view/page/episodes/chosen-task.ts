import { visible } from "../../../util/visible.ts"
import type { Chosen } from "../../data/episode-filter.ts"
import type { RunInfo } from "../../data/source.ts"
import { episodesIn, type Standing, standings } from "../../data/step-groups.ts"
import { element } from "../element.ts"
import { whileReading } from "../notice.ts"
import { counted } from "../numbers.ts"
import { type PageContext, type Route, writeRoute } from "../view.ts"
import { taskRoute } from "./routes.ts"

/** Filter of the list by a group, and by one of its states; undefined if the address contains no group. */
export async function chosenTask(
  root: HTMLElement,
  run: RunInfo,
  { path, query }: Route,
  { source, signal }: PageContext,
): Promise<{ readonly chosen: Chosen; readonly root: HTMLElement } | undefined> {
  if (path[2] === undefined) return undefined
  const [iteration, group] = [Number(path[2]), Number(path[3])]
  const place = `group ${group} of iteration ${iteration}`
  const recorded = await whileReading(root, place, source.group(run.id, iteration, group, [], signal))
  const states = recorded && standings(recorded)
  const standing = query.state === undefined ? undefined : states?.get(Number(query.state))
  const select = element(
    "select",
    { change: () => goTo(select.value === "" ? undefined : Number(select.value)) },
    element("option", { value: "" }, "any state"),
    ...[...(states ?? [])].map(([state, steps]) =>
      element("option", { value: state, selected: steps === standing }, named(state, steps)),
    ),
  )
  const goTo = (state: number | undefined) => {
    location.hash = writeRoute(taskRoute(run.id, iteration, group, state))
  }
  const chosen = element(
    "div",
    { class: "chosen" },
    element("p", {}, `Group ${group} of iteration ${iteration}`),
    states !== undefined && element("label", {}, "Episodes that visited ", select),
    element("a", { href: writeRoute({ path: ["graph", run.id, path[2], String(group)], query: {} }) }, "State graph"),
    element("a", { href: writeRoute({ path: ["episodes", run.id], query: {} }) }, "All episodes"),
  )
  const members =
    query.state === undefined ? undefined : new Set((standing ?? []).map(({ episode: { member } }) => member))
  return { chosen: { iteration, group, ...(members && { members }) }, root: chosen }
}

function named(state: number, steps: readonly Standing[]): string {
  const line = visible(steps[0]!.step.observation.slice(0, 400).trim().split("\n")[0]!)
  return `state ${state} (${counted(episodesIn(steps), "episode")}): ${line.slice(0, 60)}`
}
