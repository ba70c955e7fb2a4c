import { taskLabel } from "../../data/task-label.ts"
import { element } from "../element.ts"
import type { Place } from "./pick.ts"
import { type Colouring, colourings } from "./scale.ts"
import { oneLine } from "./short-names.ts"

/** Filters of the shown episodes, with their labels. */
export const filters = { all: "All", success: "Success", failure: "Failure" } as const
export type Filter = keyof typeof filters

export interface Chosen {
  readonly run: string
  readonly iteration: number
  readonly group: number
  readonly colouring: Colouring
  readonly filter: Filter
  readonly isTable: boolean
}

export interface Toolbar {
  readonly root: HTMLElement
  /** Updates the available groups; the selection stays. */
  offer(places: readonly Place[], tasks: readonly string[]): void
}

/** Toolbar with run, iteration, group, colours, filter, and graph or table. Stays while the selection changes. */
export function toolbar(
  runs: HTMLElement | undefined,
  chosen: Chosen,
  choose: (change: Partial<Chosen>) => void,
): Toolbar {
  let [places, tasks, iterations]: [readonly Place[], readonly string[], readonly number[]] = [[], [], []]
  let at: Pick<Chosen, "iteration" | "group"> = chosen
  const move = (iteration: number, group: number) => {
    at = { iteration, group }
    choose(at)
  }
  const output = element("span", { class: "value", "aria-hidden": "true" }, `${at.iteration}`)
  const current = () => iterations[Number(slider.value)]!
  const slider = element("input", {
    type: "range",
    min: 0,
    "aria-label": "Iteration",
    "aria-valuetext": `${at.iteration}`,
    input: () => {
      output.textContent = `${current()}`
      slider.setAttribute("aria-valuetext", `${current()}`)
    },
    change: () => {
      move(current(), sameTask(places, at, current()))
      taskSelect.replaceChildren(...taskOptions())
    },
  })
  const taskOptions = () =>
    places
      .filter(({ iteration }) => iteration === at.iteration)
      .map(({ group, task, episodes, successes }) => {
        const won = successes === undefined ? "" : ` · ${successes} of ${episodes}`
        const words = `${group}${won} · ${oneLine(taskLabel(tasks[task] ?? ""), 48)}`
        return element("option", { value: group, selected: group === at.group }, words)
      })
  const taskSelect = element("select", { change: () => move(at.iteration, Number(taskSelect.value)) })
  const colour = element(
    "select",
    { change: () => choose({ colouring: colour.value as Colouring }) },
    ...Object.entries(colourings).map(([value, words]) =>
      element("option", { value, selected: value === chosen.colouring }, words),
    ),
  )
  const iterationChoice = element("label", { class: "iterations" }, "Iteration ", output, slider)
  const root = element(
    "div",
    { class: "controls" },
    runs,
    iterationChoice,
    labelled("Group", taskSelect),
    labelled("Colour", colour),
    choice("Episodes", "filter", filters, chosen.filter, (filter) => choose({ filter })),
    choice("View", "shown", { picture: "Graph", table: "Table" }, chosen.isTable ? "table" : "picture", (shown) =>
      choose({ isTable: shown === "table" }),
    ),
  )
  return {
    root,
    offer(now, called) {
      ;[places, tasks] = [now, called]
      iterations = [...new Set(places.map(({ iteration }) => iteration))]
      iterationChoice.hidden = iterations.length < 2
      slider.max = String(iterations.length - 1)
      slider.value = String(iterations.indexOf(at.iteration))
      taskSelect.replaceChildren(...taskOptions())
    },
  }
}

/** Group of the same task in another iteration. If the task is not in that iteration: the group of the same number, or the first. */
function sameTask(
  places: readonly Place[],
  { iteration, group }: Pick<Chosen, "iteration" | "group">,
  other: number,
): number {
  const task = places.find((one) => one.iteration === iteration && one.group === group)?.task
  const there = places.filter((one) => one.iteration === other)
  const found = there.find((one) => one.group === group && one.task === task) ?? there.find((one) => one.task === task)
  return (found ?? there.find((one) => one.group === group) ?? there[0])?.group ?? group
}

function labelled(words: string, control: HTMLElement): HTMLElement {
  return element("label", { class: "field" }, element("span", {}, words), control)
}

function choice<Name extends string>(
  legend: string,
  name: string,
  choices: Readonly<Record<Name, string>>,
  chosen: Name,
  choose: (value: Name) => void,
): HTMLElement {
  const buttons = Object.entries<string>(choices).map(([value, words]) =>
    element(
      "label",
      {},
      element("input", { type: "radio", name, value, checked: value === chosen, change: () => choose(value as Name) }),
      words,
    ),
  )
  return element("fieldset", { class: "segments" }, element("legend", { class: "unseen" }, legend), ...buttons)
}
