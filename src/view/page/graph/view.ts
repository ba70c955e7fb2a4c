import { episodeTable } from "../../data/episode-table.ts"
import { element } from "../element.ts"
import { followEpisodes } from "../follow-episodes.ts"
import { damaged, noEpisodes, notice, readingEpisodes, whileReading } from "../notice.ts"
import { oneRun } from "../one-run.ts"
import type { View } from "../view.ts"
import { GroupView } from "./group-view.ts"
import { mostTelling, placesOf } from "./pick.ts"
import { colourings } from "./scale.ts"
import { type Chosen, type Filter, filters, toolbar } from "./toolbar.ts"

/**
 * View of a group's state graph: `#/graph/<run>/<iteration>/<group>`, with `colour`, `show`, `as` and the step group of `state`. By default
 * the newest iteration and the group whose states are most informative are shown.
 */
export const graph: View = async (root, route, context) => {
  const { path, query } = route
  const { source, signal } = context
  root.append(element("h2", { class: "unseen" }, "State graph of a group"))
  const { run, choice } = oneRun(route, context)
  const page = await readingEpisodes(root, run, context)
  const first = episodeTable(page)
  const all = placesOf(first)
  const places = all.filter(
    ({ iteration, group }) =>
      (path[2] === undefined || iteration === Number(path[2])) && (path[3] === undefined || group === Number(path[3])),
  )
  const group = await whileReading(root, "the episodes of a group", mostTelling(source, run.id, places, signal))
  signal.throwIfAborted()
  const broken = damaged(first.unreadable)
  if (broken) root.append(broken)
  if (!group)
    return void root.append(...(choice ? [choice] : []), all.length > 0 || broken ? missing(path) : noEpisodes())
  let chosen: Chosen = {
    run: run.id,
    iteration: group.iteration,
    group: group.group,
    colouring: oneOf(colourings, query.colour) ?? "return",
    filter: oneOf(filters, query.show) ?? ("all" satisfies Filter),
    isTable: query.as === "table",
  }
  const body = element("div", { class: "body" })
  let state = query.state === undefined ? undefined : Number(query.state)
  const note = () => context.go({ path: pathOf(chosen), query: queryOf(chosen, state) }, { replace: true })
  if (path[3] === undefined) note() // a copied address refers to this group, not to the newest one
  const shown = new GroupView(body, signal, (stepGroup) => {
    state = stepGroup
    note()
  })
  const choose = async (change: Partial<Chosen>) => {
    const before = chosen
    chosen = { ...chosen, ...change }
    note()
    if (chosen.iteration === before.iteration && chosen.group === before.group) return await shown.change(chosen)
    body.setAttribute("aria-busy", "true")
    const read = source.group(run.id, chosen.iteration, chosen.group, [], signal)
    await shown.show(await read.finally(() => body.removeAttribute("aria-busy")), chosen)
    context.announce(`Iteration ${chosen.iteration}, group ${chosen.group}`)
  }
  const showError = (error: unknown) => {
    if (!signal.aborted) body.replaceChildren(element("p", { role: "alert" }, String(error)))
  }
  const bar = toolbar(choice, chosen, (change) => void choose(change).catch(showError))
  bar.offer(all, page.tasks)
  root.append(bar.root, body)
  // New groups only extend the choice, so that the shown group does not change while it is read.
  let table = first
  followEpisodes(run, context, page.cursor, (newer) => {
    table = episodeTable(newer, table)
    bar.offer(placesOf(table), table.tasks)
  })
  await shown.show(group, chosen, state)
}

function pathOf({ run, iteration, group }: Chosen): string[] {
  return ["graph", run, String(iteration), String(group)]
}

function queryOf({ colouring, filter, isTable }: Chosen, state: number | undefined): Record<string, string> {
  return {
    ...(colouring !== "return" && { colour: colouring }),
    ...(filter !== "all" && { show: filter }),
    ...(isTable && { as: "table" }),
    ...(state !== undefined && { state: String(state) }),
  }
}

function oneOf<Name extends string>(
  known: Readonly<Record<Name, unknown>>,
  name: string | undefined,
): Name | undefined {
  return name !== undefined && Object.hasOwn(known, name) ? (name as Name) : undefined
}

function missing([, , iteration, group]: readonly string[]): HTMLElement {
  const filterText = [iteration && `iteration ${iteration}`, group && `group ${group}`].filter(Boolean).join(", ")
  return notice(
    `The episodes of ${filterText || "this run"} are not available.`,
    "They were not recorded, their file was removed or is damaged, or this report does not contain them.",
  )
}
