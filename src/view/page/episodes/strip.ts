import { advantageOf } from "../../data/earned.ts"
import type { RecordedEpisode, RecordedStep } from "../../data/recorded.ts"
import type { Scale } from "../../data/token-values.ts"
import { drawing, element } from "../element.ts"
import { short, signed, tone } from "../numbers.ts"

export interface Strip {
  readonly root: HTMLElement
  show(step: number): void
}

/** Maximum width of a step in rem. */
const widest = 4

/**
 * Overview of all steps of an episode: advantage as a bar, rewards as marks at the top, invalid actions shaded. Steps are selected by
 * pointer, or by arrow keys.
 *
 * @param tell.jump - called with a selected step
 * @param tell.point - called with the description of the step under the pointer
 */
export function strip(
  { steps }: RecordedEpisode,
  scale: Scale,
  tell: { readonly jump: (step: number) => void; readonly point: (text: string) => void },
): Strip {
  const paths = { unreadable: "", good: "", bad: "", "reward good": "", "reward bad": "" }
  for (const [at, step] of steps.entries()) {
    const [advantage, earned] = [advantageOf(step), tone(step.reward)]
    const height = 50 * Math.min(Math.abs(advantage ?? 0) / (scale.advantage || 1), 1)
    const side = tone(advantage)
    if (!step.valid) paths.unreadable += `M${at} 0h1v100h-1z`
    if (side !== "even") paths[side] += `M${at + 0.2} 50h.6v${((side === "good" ? -1 : 1) * height).toFixed(1)}h-.6z`
    if (earned !== "even") paths[`reward ${earned}`] += `M${at + 0.2} 0h.6v12h-.6z`
  }
  const here = drawing("rect", { class: "here", y: 0, width: 1, height: 100 })
  const svg = drawing(
    "svg",
    { viewBox: `0 0 ${Math.max(steps.length, 1)} 100`, preserveAspectRatio: "none", "aria-hidden": "true" },
    here,
    drawing("path", { class: "middle", d: `M0 49.5h${steps.length}v1h-${steps.length}z` }),
    ...Object.entries(paths).map(([name, d]) => d !== "" && drawing("path", { class: name, d })),
  )
  const root = element(
    "div",
    {
      class: "strip",
      role: "slider",
      tabindex: 0,
      "aria-label": "Steps",
      "aria-valuemin": 1,
      "aria-valuemax": steps.length,
    },
    svg,
  )
  root.style.width = `${widest * steps.length}rem`
  let current = 0
  const stepAt = ({ clientX }: PointerEvent) => {
    const { left, width } = svg.getBoundingClientRect()
    return Math.max(0, Math.min(Math.floor(((clientX - left) / width) * steps.length), steps.length - 1))
  }
  root.addEventListener("click", (event) => tell.jump(stepAt(event as PointerEvent)))
  root.addEventListener("pointermove", (event) => {
    const at = stepAt(event)
    if (steps[at]) tell.point(spoken(steps[at], at))
  })
  root.addEventListener("keydown", (event) => {
    const moves: Record<string, number> = {
      ArrowRight: current + 1,
      ArrowLeft: current - 1,
      PageUp: current + 10,
      PageDown: current - 10,
      Home: 0,
      End: steps.length - 1,
    }
    const to = moves[event.key]
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    event.stopPropagation()
    tell.jump(to)
    root.focus({ preventScroll: true })
  })
  return {
    root,
    show(step) {
      current = step
      here.setAttribute("x", String(step))
      root.setAttribute("aria-valuenow", String(step + 1))
      if (steps[step]) root.setAttribute("aria-valuetext", spoken(steps[step], step))
    },
  }
}

function spoken(step: RecordedStep, at: number): string {
  const advantage = signed(advantageOf(step))
  return `Step ${at + 1}: advantage ${advantage}, reward ${short(step.reward)}${step.valid ? "" : ", invalid action"}`
}
