import { visible } from "../../../util/visible.ts"
import type { RecordedEpisode, RecordedGroup } from "../../data/recorded.ts"
import type { RunInfo } from "../../data/source.ts"
import { type Standing, standings } from "../../data/step-groups.ts"
import { measures, type Scale, tokenScale } from "../../data/token-values.ts"
import { element } from "../element.ts"
import { inTurns } from "../in-turns.ts"
import { longText } from "../long-text.ts"
import { type PageContext, type Route, writeRoute } from "../view.ts"
import { episodeHead } from "./episode-head.ts"
import { observation } from "./observation.ts"
import { legend, tokenLine } from "./readout.ts"
import { tokenByKey } from "./reply.ts"
import { episodeRoute } from "./routes.ts"
import { drawStep, labelled } from "./step.ts"
import { strip } from "./strip.ts"

/** Episode with the context that is needed to show it. */
export interface Read {
  readonly run: RunInfo
  readonly recorded: RecordedGroup
  readonly episode: RecordedEpisode
  /** Steps of the group by step group. */
  readonly states: ReadonlyMap<number, readonly Standing[]>
  readonly scale: Scale
}

/** View of an episode from its first observation to its last. */
export async function conversation(
  root: HTMLElement,
  found: Pick<Read, "run" | "recorded" | "episode">,
  route: Route,
  { signal, go, announce }: PageContext,
): Promise<void> {
  const { run, recorded, episode } = found
  const read: Read = { ...found, states: standings(recorded), scale: tokenScale(recorded) }
  const last = episode.steps.length - 1
  let current = Math.max(0, Math.min(Math.trunc(Number(route.query.step)) || 0, last))
  let measure = measures.find((name) => name === route.query.colour) ?? "advantage"

  const cards = episode.steps.map((step, at) =>
    element("article", {
      class: `step${step.agent === undefined ? "" : ` speaker-${speaker(episode, step.agent)}`}`,
      tabindex: -1,
      "aria-label": `Step ${at + 1}`,
      "data-step": at,
      "data-measure": measure,
    }),
  )
  const talk = element("div", { class: "conversation", "aria-busy": "true" }, ...cards)
  /** Steps in drawing order: the current step and later ones first. */
  const inOrder = () => [...cards.keys()].sort((a, b) => Number(a < current) - Number(b < current) || a - b)
  const here = () => {
    const query = { step: String(current), ...(measure !== "advantage" && { colour: measure }) }
    go(episodeRoute(run.id, recorded.iteration, recorded.group, episode.member, query), { replace: true })
  }
  const stand = (step: number) => {
    current = Math.max(0, Math.min(step, last))
    steps.show(current)
    for (const [at, card] of cards.entries()) card.toggleAttribute("data-current", at === current)
  }
  const jump = (step: number) => {
    stand(step)
    here()
    cards[current]?.scrollIntoView({ block: "start" })
    cards[current]?.focus({ preventScroll: true })
  }
  const steps = strip(episode, read.scale, jump)
  const readout = element("p", { class: "readout" }, "Point at a token, or focus a completion and use the arrow keys.")
  const colours = legend(read.scale, measure, (chosen) => {
    measure = chosen
    bar.dataset.measure = measure
    here()
    // Visible steps first, in pieces, because there may be tens of thousands of tokens.
    void inTurns(
      inOrder().map((at) => () => {
        cards[at]!.dataset.measure = measure
      }),
      signal,
    )
  })
  const bar = element("div", { class: "bench", "data-measure": measure }, steps.root, colours, readout)
  const head = episodeHead(read)
  root.append(head.root, bar, talk)
  // The bar stays visible, so the scroll position of a step is below the bar.
  const sized = new ResizeObserver(() => talk.style.setProperty("--bench", `${bar.offsetHeight}px`))
  sized.observe(bar)
  signal.addEventListener("abort", () => sized.disconnect())
  stand(current)

  let pointed: Element | null = null
  const point = (token: HTMLElement, spoken: boolean) => {
    const reply = token.closest<HTMLElement>(".reply")
    if (!reply) return
    pointed?.classList.remove("at")
    pointed = token
    token.classList.add("at")
    readout.textContent = tokenLine(episode.steps[Number(reply.dataset.step)]!, Number(token.dataset.at))
    if (spoken) announce(readout.textContent)
  }
  talk.addEventListener("pointerover", ({ target }) => {
    const token = (target as Element).closest<HTMLElement>(".token")
    if (token) point(token, false)
  })
  talk.addEventListener("keydown", (event) => {
    if (!(event.target as Element).matches(".reply") || event.ctrlKey || event.metaKey || event.altKey) return
    const token = tokenByKey(event.target as HTMLElement, pointed, event.key)
    if (!token) return
    event.preventDefault()
    event.stopPropagation()
    token.scrollIntoView({ block: "nearest" })
    point(token, true)
  })
  talk.addEventListener("focusin", ({ target }) => {
    const card = (target as Element).closest<HTMLElement>(".step")
    if (card) stand(Number(card.dataset.step))
  })
  const open = (to: Route | undefined) => {
    if (to) location.hash = writeRoute(to)
  }
  const keys: Readonly<Record<string, () => void>> = {
    j: () => jump(current + 1),
    k: () => jump(current - 1),
    ArrowRight: () => open(head.after),
    ArrowLeft: () => open(head.before),
    l: () => location.assign(head.list),
    g: () => location.assign(head.graph),
    "?": head.help,
  }
  // Letter keys work only while the focus is in the view, so that speech input does not trigger them.
  root.parentElement?.addEventListener(
    "keydown",
    (event) => {
      const elsewhere = event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")
      const does = Object.hasOwn(keys, event.key) ? keys[event.key] : undefined
      if (elsewhere || !does || (event.target as Element).closest("input, select, textarea, .scrolled")) return
      event.preventDefault()
      does()
    },
    { signal },
  )

  const jobs = inOrder().map((at) => () => drawStep(cards[at]!, at, read))
  jobs.splice(1, 0, () => {
    if (route.query.step !== undefined) jump(current)
  })
  let moved = false
  for (const event of ["wheel", "touchmove", "keydown", "pointerdown"])
    root.addEventListener(event, () => (moved = true), { signal, passive: true })
  await inTurns([...jobs, () => talk.append(ending(episode))], signal)
  // Steps that were drawn above the current one in the meantime have moved it down.
  if (route.query.step !== undefined && !moved && !signal.aborted) cards[current]?.scrollIntoView({ block: "start" })
  talk.removeAttribute("aria-busy")
}

/** Colour number of an agent: its order of first appearance. */
function speaker({ steps }: RecordedEpisode, agent: string | number): number {
  return [...new Set(steps.map((step) => step.agent))].indexOf(agent) % 4
}

function ending({ outcome, last, error }: RecordedEpisode): HTMLElement {
  return element(
    "article",
    { class: "step end", "aria-label": "End" },
    element("div", { class: "head" }, element("h3", {}, `End: ${outcome}`)),
    error !== undefined && labelled("Error", element("p", { class: "bad" }, visible(error.slice(0, 2000)))),
    last && labelled("Observation", observation(last.text)),
    last === undefined && error === undefined && longText("The observation after the last step was not recorded."),
  )
}
