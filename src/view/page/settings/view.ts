import { visible } from "../../../util/visible.ts"
import { type Setting, settingsOf } from "../../data/settings.ts"
import { element } from "../element.ts"
import { longText } from "../long-text.ts"
import { notice } from "../notice.ts"
import { runSwatch } from "../run-mark.ts"
import type { View } from "../view.ts"

/** Minimum width of a column in rem. */
const columnWidth = 9

export const settings: View = (root, route, { store, signal, go, announce }) => {
  const search = element("input", {
    type: "search",
    placeholder: "part of a key",
    value: route.query.find ?? "",
    input: () => choose(),
  })
  const only = element("input", { type: "checkbox", checked: "differs" in route.query, change: () => choose() })
  const compare = element("label", {}, only, " Only differences")
  const holder = element("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": "Settings of the runs" })
  const choose = () => {
    const query = { ...(search.value !== "" && { find: search.value }), ...(only.checked && { differs: "" }) }
    go({ path: ["settings"], query }, { replace: true })
    draw()
    announce(`${holder.querySelectorAll("tbody tr").length} settings`)
  }
  const draw = () => {
    const runs = store.shown
    const several = runs.length > 1
    compare.hidden = !several
    const wanted = search.value.trim().toLowerCase()
    const rows = settingsOf(runs).filter(
      ({ key, differs }) => key.toLowerCase().includes(wanted) && (differs || !several || !only.checked),
    )
    if (rows.length === 0) {
      holder.replaceChildren(
        notice(
          "Nothing to show.",
          only.checked && several ? "These runs have the same settings." : "No key contains this text.",
        ),
      )
      return
    }
    const columns = runs.map((run) =>
      element(
        "th",
        { scope: "col" },
        runSwatch(store.runs.indexOf(run)),
        ` ${visible(run.name)} `,
        element(
          "button",
          { "aria-label": `Copy the settings of ${visible(run.name)}`, click: () => copy(run.settings) },
          "Copy",
        ),
      ),
    )
    const head = element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "key"), ...columns))
    const table = element("table", { class: "ruled" }, element("caption", { class: "unseen" }, "Settings"), head)
    table.append(element("tbody", {}, ...rows.map((row) => settingRow(row, several))))
    // The table scrolls horizontally if there are many runs.
    table.style.minWidth = `${columnWidth * (1 + runs.length)}rem`
    holder.replaceChildren(table)
  }
  const copy = async (values: Setting["values"][number] | object) => {
    try {
      await navigator.clipboard.writeText(JSON.stringify(values, null, 2))
      announce("Copied")
    } catch {
      announce("The browser does not allow copying")
    }
  }
  const controls = element("div", { class: "controls" }, element("label", {}, "Find ", search), compare)
  root.append(element("h2", { class: "unseen" }, "Settings"), controls, holder)
  store.subscribe(draw, signal)
  draw()
}

function settingRow({ key, values, differs }: Setting, several: boolean): HTMLElement {
  const mark = several && differs && element("span", { class: "mark" }, "differs")
  const cells = values.map((value) =>
    element("td", {}, value === undefined ? element("span", { class: "absent" }, "not set") : shownValue(value)),
  )
  return element(
    "tr",
    { class: several && differs ? "differs" : undefined },
    element("th", { scope: "row" }, ...keyParts(key), mark),
    ...cells,
  )
}

/** Key that may break after its dots. */
function keyParts(key: string): (string | HTMLElement)[] {
  return visible(key)
    .split(/(?<=\.)/)
    .flatMap((part, at) => (at === 0 ? [part] : [element("wbr"), part]))
}

/** Number of characters beyond which a value is folded. */
const longest = 400

function shownValue(value: NonNullable<Setting["values"][number]> | null): HTMLElement | string {
  const text = String(value)
  return text.length > longest ? longText(text, longest) : visible(text)
}
