import { marksOf, reachOf } from "../../data/curves.ts"
import { firstMetrics, metricNames, sectionNames, sectionOf } from "../../data/metrics.ts"
import { element } from "../element.ts"
import { Frames } from "../frames.ts"
import { notice } from "../notice.ts"
import { RunOverview } from "../overview/overview.ts"
import type { View } from "../view.ts"
import { Board } from "./board.ts"
import { type Choice, readChoice, routeOf } from "./choice.ts"
import { controls, MetricChoice } from "./controls.ts"
import { keysInWords } from "./keys.ts"
import { MarkLegend } from "./marks.ts"
import { MetricCard } from "./metric-card.ts"
import { type ShownRun, shownRuns } from "./shown-run.ts"
import { TimesCard } from "./times-card.ts"

export const curves: View = async (root, route, { store, signal, go }) => {
  const board = new Board()
  let choice = readChoice(route)
  const choose = (change: Partial<Choice>) => {
    choice = { ...choice, ...change }
    go(routeOf(choice), { replace: true })
    void draw()
  }
  const metrics = new MetricChoice(
    (name, shown) => choose({ metrics: shown ? [...chosen, name] : chosen.filter((one) => one !== name) }),
    () => choose({ metrics: undefined }),
  )
  let chosen: readonly string[] = []
  const overview = new RunOverview()
  const cards = new Cards(board, signal, (name) => choose({ metrics: chosen.filter((one) => one !== name) }))
  const legend = new MarkLegend()
  const keys = element("p", { id: "chart-keys" }, keysInWords)
  let requested = 0
  const draw = async () => {
    const mine = ++requested
    const runs = await shownRuns(store)
    // Another choice was made in the meantime, or the view was left.
    if (mine !== requested || signal.aborted) return
    const names = metricNames(runs.flatMap(({ reports }) => reports))
    chosen = choice.metrics?.filter((name) => names.has(name)) ?? firstMetrics(names)
    metrics.show(names, chosen)
    overview.show(
      runs.map((run) => ({ ...run, info: store.runs[run.place]! })),
      (id) => store.showOnly(id),
    )
    legend.show(marksOf(runs, choice.along))
    cards.draw(chosen, runs, choice)
  }
  root.append(
    element("h2", { class: "unseen" }, "Curves"),
    overview.root,
    controls(choice, board, choose),
    metrics.details,
    legend.root,
    keys,
    cards.root,
  )
  store.subscribe(draw, signal)
  await draw()
}

/** Cards of the shown metrics, followed by the times. Existing cards are reused. */
class Cards {
  readonly root: HTMLElement = element("div", { class: "cards" })
  readonly #board: Board
  readonly #signal: AbortSignal
  readonly #remove: (name: string) => void
  readonly #metrics = new Map<string, MetricCard>()
  readonly #times = new Map<string, TimesCard>()
  readonly #frames = new Frames()
  readonly #empty = notice("There are no metrics yet.", "They appear after the first iteration.")
  #layout = ""

  constructor(board: Board, signal: AbortSignal, remove: (name: string) => void) {
    this.#board = board
    this.#signal = signal
    this.#remove = remove
  }

  draw(names: readonly string[], runs: readonly ShownRun[], choice: Choice): void {
    const reach = reachOf(
      runs.map(({ reports }) => reports),
      choice.along,
    )
    if (reach) this.#board.whole = reach
    const cards = names.map((name) => this.#card(name))
    for (const card of cards) this.#frames.add(card, () => card.draw(runs, choice))
    const layout = JSON.stringify([names, runs.map(({ id }) => id), choice.along])
    if (layout !== this.#layout) {
      this.#layout = layout
      for (const [name, card] of this.#metrics) if (!names.includes(name)) this.#drop(this.#metrics, name, card)
      for (const [id, card] of this.#times) this.#drop(this.#times, id, card)
      const plots = sectionNames.flatMap((section) => {
        const own = cards.filter((_, at) => sectionOf(names[at]!) === section)
        if (own.length === 0) return []
        return [element("h3", {}, section), element("div", { class: "plots" }, ...own.map(({ card }) => card))]
      })
      this.root.replaceChildren(this.#empty, ...plots, ...this.#timesOf(runs, choice))
    }
    this.#empty.hidden = reach !== undefined
    for (const run of runs) {
      const times = this.#times.get(run.id)!
      this.#frames.add(times, () => times.draw(run))
    }
  }

  #card(name: string): MetricCard {
    const known = this.#metrics.get(name)
    if (known) return known
    const made = new MetricCard(name, this.#board, this.#signal, () => this.#remove(name))
    this.#metrics.set(name, made)
    return made
  }

  #timesOf(runs: readonly ShownRun[], { along }: Choice): HTMLElement[] {
    return runs.map((run) => {
      // Times are by iteration, so they have a separate board if the curves are by time.
      const board = along === "iteration" ? this.#board : new Board()
      const reach = reachOf([run.reports], "iteration")
      if (board !== this.#board && reach) board.whole = reach
      const card = new TimesCard(run, board, this.#signal, runs.length > 1)
      this.#times.set(run.id, card)
      return card.card
    })
  }

  #drop<Key>(from: Map<Key, Card>, key: Key, card: Card): void {
    this.#frames.remove(card)
    card.end()
    from.delete(key)
  }
}

interface Card {
  end(): void
}
