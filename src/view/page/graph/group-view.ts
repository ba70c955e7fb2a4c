import { foldChains } from "../../data/chains.ts"
import { type StateGraph, stateGraph } from "../../data/graph.ts"
import type { RecordedGroup } from "../../data/recorded.ts"
import { element } from "../element.ts"
import { notice } from "../notice.ts"
import { counted } from "../numbers.ts"
import { episodeList } from "./episode-list.ts"
import { legend } from "./legend.ts"
import { drawGraph, namesOf, type Picture } from "./picture.ts"
import { stateScale } from "./scale.ts"
import { statePanel } from "./state-panel.ts"
import { stateTable } from "./state-table.ts"
import { tipOf } from "./tip.ts"
import type { Chosen } from "./toolbar.ts"

/** Number of boxes above which the table is shown first. */
const mostBoxes = 400

/** State graph of a group: graph or table, legend, episodes, and the chosen state. */
export class GroupView {
  readonly #onState: (stepGroup: number | undefined) => void
  readonly #body: HTMLElement
  readonly #stage = element("div", { class: "stage" })
  readonly #side = element("aside", { "aria-label": "Episodes and state" })
  readonly #legend = element("div")
  readonly #tip = element("div", { class: "tip", "aria-hidden": "true", hidden: true })
  readonly #kept = new Set<number>()
  readonly #opened = new Set<number>()
  #group: RecordedGroup | undefined
  #graph: StateGraph = { nodes: [], edges: [], paths: [], discounted: false }
  #names: readonly string[] = []
  #chosen!: Chosen
  #node: number | undefined
  #picture: Picture | undefined
  #drawing = new AbortController()
  /** Whether the graph is drawn although it is large. */
  #isForced = false

  /** @param onState - called with the step group of the chosen state */
  constructor(body: HTMLElement, signal: AbortSignal, onState: (stepGroup: number | undefined) => void) {
    this.#body = body
    this.#onState = onState
    signal.addEventListener("abort", () => this.#drawing.abort(), { once: true })
  }

  /** Shows a group; undefined if the group is not available. */
  async show(group: RecordedGroup | undefined, chosen: Chosen, stepGroup?: number): Promise<void> {
    this.#group = group
    this.#chosen = chosen
    if (!group) {
      this.#drawing.abort()
      this.#body.replaceChildren(
        notice(
          "The episodes of this group are not available.",
          "They were not recorded, their file was removed or is damaged, or this report does not contain them.",
        ),
      )
      return
    }
    this.#graph = stateGraph(group)
    this.#names = namesOf(this.#graph.nodes)
    this.#isForced = false
    this.#kept.clear()
    this.#opened.clear()
    const at = this.#graph.nodes.findIndex((node) => node.kind === "state" && node.stepGroup === stepGroup)
    this.#node = at < 0 ? undefined : at
    this.#body.replaceChildren(element("div", { class: "main" }, this.#stage, this.#legend), this.#side)
    this.#drawSide()
    await this.#drawStage()
  }

  async change(chosen: Chosen): Promise<void> {
    const before = this.#chosen
    this.#chosen = chosen
    if (chosen.isTable !== before.isTable) return await this.#drawStage()
    this.#colour()
    this.#light()
  }

  async #drawStage(): Promise<void> {
    this.#drawing.abort()
    this.#drawing = new AbortController()
    const { signal } = this.#drawing
    this.#picture = undefined
    const boxes = this.#chosen.isTable || this.#isForced ? 0 : foldChains(this.#graph).boxes.length
    const isTable = this.#chosen.isTable || boxes > mostBoxes
    this.#stage.classList.toggle("table", isTable)
    if (isTable) {
      const table = stateTable(this.#graph, this.#names, (node) => this.#choose(node))
      this.#stage.replaceChildren(...(boxes > mostBoxes ? [this.#tooLarge(boxes)] : []), table)
      return this.#colour()
    }
    const tell = {
      choose: (node: number) => this.#choose(node),
      open: (node: number) => {
        this.#opened.add(node)
        void this.#drawStage().then(() => this.#picture?.focus(node))
      },
      point: (node: number | undefined) => {
        this.#tip.hidden = node === undefined
        if (node !== undefined) this.#tip.replaceChildren(...tipOf(this.#graph, node))
      },
    }
    try {
      this.#picture = await drawGraph(this.#stage, this.#graph, this.#opened, tell, signal)
    } catch (error) {
      if (signal.aborted) return
      throw error
    }
    this.#stage.append(this.#tip)
    this.#colour()
    this.#light()
    this.#picture.select(this.#node)
  }

  /** Offer to draw a graph of which only a table is shown. */
  #tooLarge(boxes: number): HTMLElement {
    const draw = () => {
      this.#isForced = true
      void this.#drawStage()
    }
    return element(
      "p",
      { class: "large-graph" },
      `The graph has ${counted(boxes, "box", "boxes")}, too many to read. `,
      element("button", { type: "button", click: draw }, "Draw it anyway"),
    )
  }

  #colour(): void {
    const { colouring } = this.#chosen
    const scale = stateScale(this.#graph, colouring)
    this.#picture?.colour(colouring, scale)
    this.#legend.replaceChildren(legend(this.#graph, colouring, scale))
    this.#legend.hidden = this.#chosen.isTable
  }

  /** Highlights the path under the pointer and the selected paths, or else the paths that pass the filter. */
  #light(pointed?: number): void {
    const { filter } = this.#chosen
    const { paths } = this.#graph
    const lit = [...this.#kept, ...(pointed === undefined ? [] : [pointed])]
    if (lit.length > 0) this.#picture?.light(lit)
    else if (filter === "all") this.#picture?.light(undefined)
    else this.#picture?.light(paths.flatMap(({ ending }, at) => (ending === filter ? [at] : [])))
  }

  #choose(node: number | undefined): void {
    const from = this.#node
    this.#node = node
    const state = node === undefined ? undefined : this.#graph.nodes[node]
    this.#onState(state?.kind === "state" ? state.stepGroup : undefined)
    this.#drawSide()
    this.#picture?.select(node)
    const panel = this.#side.querySelector<HTMLElement>(".standing")
    panel?.focus({ preventScroll: true })
    // On a phone the panel is below the graph.
    if (panel && panel.getBoundingClientRect().top > innerHeight - 80) panel.scrollIntoView({ block: "start" })
    else if (node === undefined && from !== undefined) this.#picture?.focus(from)
  }

  #drawSide(): void {
    const tell = { close: () => this.#choose(undefined), choose: (node: number) => this.#choose(node) }
    const panel =
      this.#node === undefined || !this.#group
        ? []
        : [statePanel(this.#chosen.run, this.#group, this.#graph, this.#node, tell)]
    const list = episodeList(this.#graph, this.#kept, {
      point: (path) => this.#light(path),
      keep: () => this.#light(),
    })
    this.#body.classList.toggle("opened", panel.length > 0)
    this.#side.replaceChildren(...panel, list)
  }
}
