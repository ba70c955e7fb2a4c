import { advantageOf } from "../../data/earned.ts"
import type { RecordedStep } from "../../data/recorded.ts"
import { trainingOption } from "../../data/settings.ts"
import type { RunInfo } from "../../data/source.ts"
import { element } from "../element.ts"
import { short, signed, tone } from "../numbers.ts"

/** Credit of a step: reward, discounted return, episode advantage, step advantage and their sum. */
export function credit(step: RecordedStep, run: RunInfo): HTMLElement {
  const advantage = advantageOf(step)
  const pair = (name: string, value: string, kind: string = "") =>
    element("div", { class: name.replaceAll(" ", "-") }, element("dt", {}, name), element("dd", { class: kind }, value))
  const perToken = typeof step.advantage === "object"
  const levels = step.episodeAdvantage !== undefined && step.stepAdvantage !== undefined
  return element(
    "dl",
    { class: "credit" },
    pair("reward", short(step.reward), step.reward === 0 ? "" : tone(step.reward)),
    step.discountedReturn !== undefined && pair("discounted return", short(step.discountedReturn)),
    step.episodeAdvantage !== undefined &&
      pair("episode advantage", signed(step.episodeAdvantage), tone(step.episodeAdvantage)),
    levels && sign("plus", `+${weight(trainingOption(run, "estimator.omega"))}`),
    step.stepAdvantage !== undefined && pair("step advantage", signed(step.stepAdvantage), tone(step.stepAdvantage)),
    levels && sign("equals", "="),
    advantage === undefined
      ? pair("advantage", "not trained on")
      : pair(perToken ? "mean advantage" : "advantage", signed(advantage), `sum ${tone(advantage)}`),
  )
}

/** Factor ω of the step advantage; as a symbol if the run's configuration does not contain its value. */
function weight(omega: string | number | boolean | null | undefined): string {
  if (typeof omega !== "number") return " ω ×"
  return omega === 1 ? "" : ` ${short(omega)} ×`
}

function sign(name: string, character: string): HTMLElement {
  return element(
    "div",
    { class: "sign" },
    element("dt", { class: "unseen" }, name),
    element("dd", { "aria-hidden": "true" }, character),
  )
}
