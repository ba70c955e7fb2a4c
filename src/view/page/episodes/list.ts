import { returnBars, successBars } from "../../data/episode-bars.ts"
import { type EpisodeFilter, episodeName, readFilter, selectEpisodes, writeFilter } from "../../data/episode-filter.ts"
import { type EpisodeTable, episodeTable, orderedBy } from "../../data/episode-table.ts"
import { baseRun, evaluationsOf, isEvaluations, type RunInfo } from "../../data/source.ts"
import { element } from "../element.ts"
import { followEpisodes } from "../follow-episodes.ts"
import { damaged, noEpisodes, readingEpisodes } from "../notice.ts"
import { counted, short } from "../numbers.ts"
import { type PageContext, type Route, writeRoute } from "../view.ts"
import { type Brush, brush } from "./brush.ts"
import { chosenTask } from "./chosen-task.ts"
import { filters } from "./filters.ts"
import { grid } from "./grid.ts"
import { rememberOrder } from "./reading-order.ts"
import { episodeRoute } from "./routes.ts"
import { textSearch } from "./text-search.ts"

/** List of the recorded episodes of a run, or of a group, that pass the filter in the address. */
export async function episodeList(root: HTMLElement, run: RunInfo, route: Route, context: PageContext): Promise<void> {
  const { go } = context
  const page = await readingEpisodes(root, run, context)
  const task = await chosenTask(root, run, route, context)
  let table = episodeTable(page)
  let filter = readFilter(route.query)
  let order = orderedBy(table, filter.column, filter.descending)
  let brushes: ReturnType<typeof brushesOf>

  const here = (): Route => ({
    path: route.path,
    query: {
      ...(route.query.state !== undefined && { state: route.query.state }),
      ...writeFilter(filter),
      ...(texts.text !== "" && { text: texts.text }),
    },
  })
  const ask = (change: Partial<EpisodeFilter>) => {
    const before = filter
    filter = { ...filter, ...change }
    if (filter.column !== before.column || filter.descending !== before.descending)
      order = orderedBy(table, filter.column, filter.descending)
    go(here(), { replace: true })
    show()
  }
  const form = filters(ask)
  const rows = grid({
    sort: (column) => ask({ column, descending: column === filter.column ? !filter.descending : column !== "task" }),
    route(at) {
      const place = [table.iteration[at]!, table.group[at]!, table.member[at]!] as const
      const step = texts.found()?.get(episodeName(...place))
      return episodeRoute(run.id, ...place, step === undefined ? {} : { step: String(step) })
    },
  })
  const texts = textSearch(run, context, () => {
    go(here(), { replace: true })
    show()
  })
  const count = element("output")
  const strips = element("div", { class: "brushes" })
  const empty = element("div", { class: "empty" })
  const [broken, other] = [element("div"), element("span")]
  const show = (stay = false) => {
    const found = texts.found()
    const places = selectEpisodes(table, filter, order, { ...task?.chosen, ...(found && { found }) })
    rememberOrder(run.id, { table, places, back: writeRoute(here()) })
    broken.replaceChildren(...[damaged(table.unreadable) ?? []].flat())
    count.textContent = `${places.length.toLocaleString("en")} of ${counted(table.length, "episode")}`
    for (const one of [count, form.root, texts.root, rows.root]) one.hidden = table.length === 0
    // Only some episodes of an evaluation are recorded, which have no distribution.
    strips.hidden = table.length === 0 || isEvaluations(run.id)
    empty.replaceChildren(...emptyNote(table, places.length))
    form.show(filter, table)
    brushes.success.show(places, [filter.iteration[0], filter.iteration[1] + 1])
    brushes.earned.show(places, filter.return)
    rows.show(table, places, { ...filter, stay })
  }
  const renew = (stay = false) => {
    brushes = brushesOf(table, ask)
    strips.replaceChildren(brushes.success.root, brushes.earned.root)
    show(stay)
  }
  root.append(
    ...heading(run, count, other, broken),
    ...(task ? [task.root] : []),
    strips,
    form.root,
    texts.root,
    rows.root,
    empty,
  )
  renew()
  if (route.query.text) texts.start(route.query.text)
  void otherEpisodes(run, context).then((link) => link && other.append(link))
  followEpisodes(run, context, page.cursor, (newer) => {
    table = episodeTable(newer, table)
    order = orderedBy(table, filter.column, filter.descending)
    renew(true)
  })
}

/** Title with the number of episodes and a link to others, damaged files, and what is recorded of evaluations. */
function heading(run: RunInfo, count: HTMLElement, other: HTMLElement, broken: HTMLElement): (HTMLElement | string)[] {
  const title = isEvaluations(run.id) ? "Evaluation episodes" : "Episodes"
  return [
    element("div", { class: "title" }, element("h2", {}, title), count, other),
    broken,
    isEvaluations(run.id)
      ? element("p", { class: "faint" }, "Some episodes of each evaluation are recorded, unsuccessful ones first.")
      : "",
  ]
}

function emptyNote({ length, unreadable }: EpisodeTable, found: number): (HTMLElement | string)[] {
  if (length === 0 && unreadable.length === 0) return [noEpisodes()]
  return found === 0 ? ["No episode matches the filters."] : []
}

/** Link from the episodes of training to those of evaluations, if some were recorded, and back. */
async function otherEpisodes(run: RunInfo, { source, signal }: PageContext): Promise<HTMLElement | undefined> {
  const [id, name] = isEvaluations(run.id)
    ? [baseRun(run.id), "Training episodes"]
    : [evaluationsOf(run.id), "Evaluation episodes"]
  const page = await source.episodes(id, undefined, signal).catch(() => undefined)
  if (!page || page.iteration.length === 0) return undefined
  return element(
    "a",
    { href: writeRoute({ path: ["episodes", id], query: {} }) },
    `${name} (${page.iteration.length.toLocaleString("en")})`,
  )
}

function brushesOf(
  table: EpisodeTable,
  ask: (change: Partial<EpisodeFilter>) => void,
): { readonly success: Brush; readonly earned: Brush } {
  const all = Uint32Array.from({ length: table.length }, (_, at) => at)
  const [success, earned] = [successBars(table), returnBars(table)]
  return {
    success: brush({
      title: "Success by iteration",
      full: "100 %",
      bars: success,
      all,
      ends: [String(success.edges[0] ?? ""), String((success.edges.at(-1) ?? 1) - 1)],
      ask: ([from, to]) => ask({ iteration: [from, to - 1] }), // `to` is the iteration after the last one
    }),
    earned: brush({
      title: "Returns",
      full: counted(earned.most, "episode"),
      bars: earned,
      all,
      ends: [short(earned.edges[0]), short(earned.edges.at(-1))],
      ask: (range) => ask({ return: [tidy(range[0], Math.floor), tidy(range[1], Math.ceil)] }),
    }),
  }
}

/** Rounds a bound outwards to three digits. */
function tidy(value: number, round: (value: number) => number): number {
  if (!Number.isFinite(value) || value === 0) return value
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 2)
  return Number((round(Number((value / unit).toPrecision(12))) * unit).toPrecision(12))
}
