import { visible } from "../../util/visible.ts"
import { baseRun, type RunInfo } from "../data/source.ts"
import { element } from "./element.ts"
import { type PageContext, type Route, writeRoute } from "./view.ts"

/**
 * Run of a view that shows a single run: that in the address (`#/<view>/<run>/…`), by default the first shown run. `choice` is a control
 * for the selection; undefined if there is only one run.
 *
 * @throws {Error} if the address names an unknown run
 */
export function oneRun(
  { path: [view = "", id] }: Route,
  { store }: PageContext,
): { readonly run: RunInfo; readonly choice: HTMLElement | undefined } {
  const { runs } = store
  const found = id === undefined ? store.shown[0] : runs.find((one) => one.id === baseRun(id))
  const run = found && id !== undefined ? { ...found, id } : found
  if (!run) throw new Error(`There is no run "${visible(id ?? "")}".`)
  if (runs.length === 1) return { run, choice: undefined }
  const select = element(
    "select",
    {
      change: () => {
        location.hash = writeRoute({ path: [view, select.value], query: {} })
      },
    },
    ...runs.map((one) => element("option", { value: one.id, selected: one === found }, visible(one.name))),
  )
  return { run, choice: element("label", { class: "field" }, element("span", {}, "Run"), select) }
}
