import { visible } from "../../util/visible.ts"
import type { Source } from "../data/source.ts"
import { curves } from "./curves/view.ts"
import { element } from "./element.ts"
import { episodes } from "./episodes/view.ts"
import { graph } from "./graph/view.ts"
import { inlineSource } from "./inline-source.ts"
import { follow } from "./live.ts"
import { notice } from "./notice.ts"
import { reportNote } from "./report-note.ts"
import { runChoice } from "./run-choice.ts"
import { RunStore } from "./run-store.ts"
import { runs } from "./runs/view.ts"
import { serverSource } from "./server-source.ts"
import { settings } from "./settings/view.ts"
import { sharedSource } from "./shared-source.ts"
import { themeChoice } from "./theme.ts"
import { type Route, readRoute, type View, writeRoute } from "./view.ts"

const views: Readonly<Record<string, { readonly title: string; readonly view: View }>> = {
  curves: { title: "Curves", view: curves },
  runs: { title: "Runs", view: runs },
  episodes: { title: "Episodes", view: episodes },
  graph: { title: "States", view: graph },
  settings: { title: "Settings", view: settings },
}

// Reads the inlined data before the body is replaced.
const inlined = inlineSource()
const main = element("main", { id: "main", tabindex: -1 })
const statusNote = element("p", { role: "status", class: "unseen" })
const trouble = element("p", { role: "status", class: "trouble", hidden: true })
const links = Object.entries(views).map(([name, { title }]) =>
  element("a", { href: `#/${name}`, "data-view": name }, title),
)
// A button, because a link to #main would be read as a route.
const skip = element("button", { class: "skip", click: () => main.focus() }, "Skip to content")
const bar = element("div", { class: "bar" }, element("h1", {}, "gigpo"))
bar.append(element("nav", { "aria-label": "Views" }, ...links), themeChoice())
const header = element("header", {}, bar)
document.body.replaceChildren(skip, header, trouble, main, statusNote)
main.append(element("p", { class: "loading" }, "Loading runs …"))

try {
  await start(inlined ?? (await serverSource()))
} catch (error) {
  main.replaceChildren(failed(error))
}

async function start(source: Source): Promise<void> {
  const store = new RunStore(source, await source.runs())
  const shared = sharedSource(source, store)
  header.append(runChoice(store, new AbortController().signal))
  let shown = new AbortController()
  const show = async ({ type } = new Event("start")) => {
    shown.abort()
    shown = new AbortController()
    const { signal } = shown
    const route = readRoute(location.hash)
    const name = route.path[0] ?? "curves"
    const known = Object.hasOwn(views, name) ? views[name] : undefined
    for (const link of links) {
      if (link.dataset.view === name) link.setAttribute("aria-current", "page")
      else link.removeAttribute("aria-current")
    }
    document.title = [
      known?.title ?? "Not found",
      ...(store.runs.length === 1 ? [visible(store.runs[0]!.name)] : []),
      "gigpo",
    ].join(" · ")
    const root = element("div", { class: `view ${known ? name : "unknown"}` })
    main.replaceChildren(root)
    // After a link, the focus moves to the new view. When the page is opened, it stays at the top.
    if (type === "hashchange") main.focus({ preventScroll: true })
    if (!known) root.append(notice("This view does not exist.", "Use one of the links above."))
    else if (store.runs.length === 0) root.append(notice("There are no runs yet.", "Runs appear here when they begin."))
    else await fill(root, known.view, route, signal)
  }
  const fill = async (root: HTMLElement, view: View, route: Route, signal: AbortSignal) => {
    const announce = (text: string) => {
      statusNote.textContent = text
    }
    const go = (to: Route, { replace = false } = {}) => {
      if (replace) history.replaceState(null, "", writeRoute(to))
      else location.hash = writeRoute(to)
    }
    try {
      await view(root, route, { source: shared, runs: store.runs, store, signal, go, announce })
    } catch (error) {
      if (!signal.aborted) root.replaceChildren(failed(error))
    }
  }
  // One run has no table of runs.
  const showRuns = () => {
    links.find((link) => link.dataset.view === "runs")!.hidden = store.runs.length < 2
  }
  store.subscribe(showRuns, new AbortController().signal)
  showRuns()
  addEventListener("hashchange", show)
  await show()
  const kept = await source.kept?.()
  if (kept) document.body.append(reportNote(kept, store.runs))
  if (!source.live) return
  if (store.runs.length === 0) {
    const first = new AbortController()
    store.subscribe(() => {
      first.abort()
      void show()
    }, first.signal)
  }
  await follow(store, (text) => {
    trouble.hidden = text === undefined
    trouble.textContent = text ?? ""
  })
}

function failed(error: unknown): HTMLElement {
  const shown = notice("This view cannot be shown.", error instanceof Error ? error.message : String(error))
  shown.setAttribute("role", "alert")
  return shown
}
