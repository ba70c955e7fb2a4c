import { advantageOf } from "../../data/earned.ts"
import type { RecordedEpisode, RecordedStep } from "../../data/recorded.ts"
import type { Scale } from "../../data/token-values.ts"
import { element } from "../element.ts"
import { short, signed, tone } from "../numbers.ts"

export interface Strip {
  readonly root: HTMLElement
  show(step: number): void
}

/** Overview of an episode's steps, with links: advantage as a bar, reward as a dot, invalid actions crossed out. */
export function strip({ steps }: RecordedEpisode, scale: Scale, jump: (step: number) => void): Strip {
  const buttons = steps.map((step, at) => {
    const advantage = advantageOf(step)
    const bar = element("span", { class: `bar ${tone(advantage)}` })
    bar.style.height = `${(50 * Math.min(Math.abs(advantage ?? 0) / (scale.advantage || 1), 1)).toFixed(1)}%`
    return element(
      "button",
      {
        type: "button",
        class: step.valid ? "" : "unreadable",
        "aria-label": spoken(step, at),
        title: spoken(step, at),
        tabindex: -1,
        click: () => jump(at),
      },
      bar,
      step.reward !== 0 && element("span", { class: `reward ${tone(step.reward)}` }),
    )
  })
  const root = element("div", { class: "strip", role: "toolbar", "aria-label": "Steps" }, ...buttons)
  root.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement)
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    event.stopPropagation()
    buttons[Math.max(0, Math.min(to, buttons.length - 1))]?.focus()
  })
  return {
    root,
    show(current) {
      for (const [at, button] of buttons.entries()) {
        button.tabIndex = at === current ? 0 : -1
        if (at === current) button.setAttribute("aria-current", "step")
        else button.removeAttribute("aria-current")
      }
      const here = buttons[current]
      if (here) root.scrollLeft = here.offsetLeft - root.clientWidth / 2
    },
  }
}

function spoken(step: RecordedStep, at: number): string {
  const advantage = signed(advantageOf(step))
  return `Step ${at + 1}: advantage ${advantage}, reward ${short(step.reward)}${step.valid ? "" : ", invalid action"}`
}
