import { visible } from "../../../util/visible.ts"
import { newLines } from "../../data/new-lines.ts"
import type { RecordedStep } from "../../data/recorded.ts"
import { element } from "../element.ts"
import { edgedText, longText } from "../long-text.ts"
import { counted } from "../numbers.ts"
import type { Read } from "./conversation.ts"
import { credit } from "./credit.ts"
import { observation } from "./observation.ts"
import { replyTokens } from "./reply.ts"
import { comparison } from "./standing.ts"

/** Step of an episode: observation, prompt, completion, action and credit. */
export function drawStep(card: HTMLElement, at: number, read: Read): void {
  const { run, recorded, episode, states, scale } = read
  const step = episode.steps[at]!
  const standing = states.get(step.stepGroup)!
  const marks = [
    !step.valid && element("span", { class: "mark bad" }, "invalid action"),
    step.finishReason === "length" && element("span", { class: "mark warning" }, "truncated completion"),
    ...(["agent", "conversation"] as const).map(
      (name) => step[name] !== undefined && element("span", { class: "mark" }, `${name} ${named(step[name])}`),
    ),
  ]
  card.append(
    element(
      "div",
      { class: "head" },
      element("h3", { id: `title-${at}` }, `Step ${at + 1}`, element("span", {}, ` of ${episode.steps.length}`)),
      ...marks,
    ),
    labelled("Observation", observation(step.observation)),
    promptOf(step, before(episode.steps, at)),
    labelled("Completion", replyTokens(step, at, scale)),
    labelled("Action", element("code", { class: `action${step.valid ? "" : " unreadable"}` }, edgedText(step.action))),
    credit(step, run),
    comparison(run.id, recorded, standing, standing.find((one) => one.episode === episode && one.at === at)!),
  )
}

export function labelled(label: string, content: Node): HTMLElement {
  return element("section", { class: `${label.toLowerCase()}-part` }, element("h4", {}, label), content)
}

function named(who: string | number): string {
  return visible(String(who).slice(0, 40))
}

/** Previous step of the same conversation and agent. */
function before(steps: readonly RecordedStep[], at: number): RecordedStep | undefined {
  const { agent, conversation } = steps[at]!
  return steps.slice(0, at).findLast((step) => step.agent === agent && step.conversation === conversation)
}

/** Folded prompt of a step, drawn when it is opened for the first time. */
function promptOf(step: RecordedStep, earlier: RecordedStep | undefined): HTMLElement {
  const details = element(
    "details",
    { class: "prompt" },
    element("summary", {}, `Prompt · ${counted(step.promptTokens, "token")}`),
  )
  const open = () => {
    const parts = newLines(step.prompt, earlier?.prompt)
    const marked = parts.map(({ text, fresh }) => ({ text, marked: fresh && earlier !== undefined }))
    if (earlier) details.append(element("p", { class: "note" }, "Marked: lines that are not in the previous prompt."))
    details.append(longText(marked))
  }
  details.addEventListener("toggle", open, { once: true })
  return details
}
