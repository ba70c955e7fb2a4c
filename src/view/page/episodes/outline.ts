import { advantageOf } from "../../data/earned.ts"
import { type OutlineRow, outlineOf } from "../../data/outline.ts"
import type { RecordedEpisode } from "../../data/recorded.ts"
import { actionText } from "../../data/tool-calls.ts"
import { element } from "../element.ts"
import { oneLine } from "../graph/short-names.ts"
import { short, signed, tone } from "../numbers.ts"
import { Windowed } from "../windowed.ts"
import type { Read } from "./conversation.ts"
import { drawStep } from "./step.ts"

/** Number of characters of an action in its row. */
const longestAction = 200
/** Height of a closed row in pixels. */
const rowHeight = 37

/** Outline of an episode: a row for each step, which opens to show the whole step. Only rows near the visible part are in the page. */
export class Outline {
  readonly root: HTMLElement
  readonly #read: Read
  readonly #rows: readonly OutlineRow[]
  readonly #list: Windowed
  /** Shown step of each opened row. */
  readonly #opened = new Map<OutlineRow, number>()
  readonly #jump: (step: number) => void
  #current = 0

  /** @param jump - called with the step of a link */
  constructor(read: Read, jump: (step: number) => void, signal: AbortSignal) {
    this.#read = read
    this.#jump = jump
    this.#rows = outlineOf(read.episode.steps)
    this.#list = new Windowed(this.#rows.length, (row) => this.#draw(this.#rows[row]!), rowHeight, signal)
    this.root = this.#list.root
  }

  /** Whether the row of a step is open. */
  isOpen(step: number): boolean {
    return this.#opened.has(this.#rowOf(step))
  }

  openAll(open: boolean): void {
    this.#opened.clear()
    if (open) for (const row of this.#rows) this.#opened.set(row, row.first)
    this.#list.redraw()
  }

  /** Marks a step as current. With `open` its row is opened. */
  stand(step: number, open: boolean): HTMLElement {
    this.#current = step
    const row = this.#rowOf(step)
    const before = this.#opened.get(row)
    if (before !== undefined || open) this.#opened.set(row, step)
    let card = this.#list.row(this.#rows.indexOf(row))
    if (before !== this.#opened.get(row)) {
      const again = this.#draw(row)
      card.replaceWith(again)
      card = again
    }
    for (const other of this.root.querySelectorAll("[data-current]")) other.removeAttribute("data-current")
    card.toggleAttribute("data-current", true)
    return card
  }

  #rowOf(step: number): OutlineRow {
    return this.#rows.findLast(({ first }) => first <= step)!
  }

  #draw(row: OutlineRow): HTMLElement {
    const { episode } = this.#read
    const at = this.#opened.get(row)
    const agent = episode.steps[row.first]!.agent
    const isCurrent = this.#current >= row.first && this.#current < row.first + row.count
    const card = element("article", {
      class: ["step", at !== undefined && "opened", agent !== undefined && `speaker-${speaker(episode, agent)}`]
        .filter(Boolean)
        .join(" "),
      tabindex: -1,
      "aria-label": row.count === 1 ? `Step ${row.first + 1}` : `Steps ${row.first + 1} to ${row.first + row.count}`,
      "data-step": at ?? row.first,
      "data-current": isCurrent,
    })
    const toggle = () => {
      if (!this.#opened.delete(row)) this.#opened.set(row, row.first)
      const again = this.#draw(row)
      card.replaceWith(again)
      again.querySelector("button")!.focus({ preventScroll: true })
    }
    card.append(element("h3", {}, this.#line(row, at !== undefined, toggle)))
    if (at === undefined) return card
    if (row.count > 1) card.append(this.#pager(row, at))
    drawStep(card, at, {
      ...this.#read,
      jump: this.#jump,
      sameAs: row.sameAs ?? (at > row.first ? row.first : undefined),
    })
    return card
  }

  /** Button with the step in one line. */
  #line(row: OutlineRow, isOpen: boolean, toggle: () => void): HTMLElement {
    const { first, count, sameAs } = row
    const step = this.#read.episode.steps[first]!
    const advantage = advantageOf(step)
    const marks = [
      count > 1 && element("span", { class: "mark" }, `×${count}`),
      !step.valid && element("span", { class: "mark bad" }, "invalid"),
      step.finishReason === "length" && element("span", { class: "mark warning" }, "truncated"),
      sameAs !== undefined && element("span", { class: "faint" }, `same state as step ${sameAs + 1}`),
    ]
    const number = (name: string, text: string, kind: string) =>
      element("span", { class: `number ${kind}` }, element("span", { class: "faint" }, `${name} `), text)
    return element(
      "button",
      { type: "button", class: "line", "aria-expanded": String(isOpen), click: toggle },
      element(
        "span",
        { class: "place" },
        element("span", { class: "unseen" }, "Step "),
        count === 1 ? first + 1 : `${first + 1}–${first + count}`,
      ),
      element(
        "span",
        { class: `did${step.valid ? "" : " unreadable"}` },
        oneLine(actionText(step.action), longestAction) || "(empty)",
      ),
      element("span", { class: "marks" }, ...marks),
      number("reward", short(step.reward), tone(step.reward)),
      number("advantage", signed(advantage), tone(advantage)),
    )
  }

  /** Choice of a step of a row with several. */
  #pager({ first, count }: OutlineRow, at: number): HTMLElement {
    const button = (to: number, sign: string, name: string) =>
      element(
        "button",
        {
          type: "button",
          "aria-label": name,
          disabled: to < first || to >= first + count,
          click: () => this.#jump(to),
        },
        sign,
      )
    return element(
      "p",
      { class: "pager" },
      `${count} steps with the same action in the same state. `,
      button(at - 1, "‹", "Previous of these steps"),
      element("span", { class: "number" }, ` Step ${at + 1} `),
      button(at + 1, "›", "Next of these steps"),
    )
  }
}

/** Number of an agent for its appearance: its order of first appearance. */
function speaker({ steps }: RecordedEpisode, agent: string | number): number {
  return [...new Set(steps.map((step) => step.agent))].indexOf(agent) % 4
}
