import { resultOf } from "../../../rollout/outcome.ts"
import { visible } from "../../../util/visible.ts"
import { episodeText } from "../../data/episode-text.ts"
import type { RecordedEpisode } from "../../data/recorded.ts"
import { taskLabel } from "../../data/task-label.ts"
import { element } from "../element.ts"
import { longText } from "../long-text.ts"
import { counted, short } from "../numbers.ts"
import { type Route, writeRoute } from "../view.ts"
import type { Read } from "./conversation.ts"
import { help } from "./help.ts"
import { lastList, neighbours } from "./reading-order.ts"
import { episodeRoute, taskRoute } from "./routes.ts"

const keys = [
  ["j k", "next and previous step"],
  ["→ ←", "next and previous episode, as they were listed; in a reply, its tokens; on the strip, its steps"],
  ["l", "back to the list"],
  ["g", "the graph of the task's states"],
  ["?", "this"],
] as const

export interface EpisodeHead {
  readonly root: HTMLElement
  readonly before?: Route
  readonly after?: Route
  /** Addresses of the list that somebody came from, and of the task's graph. */
  readonly list: string
  readonly graph: string
  help(): void
}

/** Which episode it is, how it went, and where one goes from it. */
export function episodeHead({ run, recorded, episode }: Read): EpisodeHead {
  const { iteration, group, episodes } = recorded
  const members = episodes.map(({ member }) => member)
  const { before, after } = neighbours(run.id, iteration, group, episode.member, members)
  const list = lastList(run.id)?.back ?? writeRoute(taskRoute(run.id, iteration, group))
  const graph = writeRoute({ path: ["graph", run.id, String(iteration), String(group)], query: {} })
  const { button, show } = help(keys)
  const beside = (to: Route | undefined, name: string, sign: string) =>
    to && element("a", { href: writeRoute(to), "aria-label": `${name} episode`, class: "button" }, sign)
  const root = element(
    "div",
    { class: "episode-head" },
    element(
      "div",
      { class: "title" },
      element("a", { href: list, class: "back" }, "‹ Episodes"),
      element("h2", {}, `Episode ${episode.member}`, element("span", {}, ` of group ${group}, iteration ${iteration}`)),
      beside(before, "Previous", "←"),
      beside(after, "Next", "→"),
    ),
    element("div", { class: "facts" }, ...facts(episode)),
    taskOf(recorded.task),
    element(
      "div",
      { class: "ways" },
      compareChoice(run.id, recorded, episode.member),
      element("a", { href: writeRoute(taskRoute(run.id, iteration, group)) }, "Episodes of this task"),
      element("a", { href: graph }, "Graph of its states"),
      copyButton(() => visible(episodeText(recorded, episode))),
      button,
    ),
  )
  return { root, ...(before && { before }), ...(after && { after }), list, graph, help: show }
}

/** What the task is called, and all of it behind that, where it is more. */
function taskOf(task: unknown): HTMLElement {
  const json = JSON.stringify(task) ?? ""
  const label = taskLabel(json)
  if (label === json) return element("div", { class: "task" }, longText(json, 300))
  const whole = longText(typeof task === "string" ? task : JSON.stringify(task, undefined, 1))
  return element("details", { class: "task" }, element("summary", {}, longText(label, 300)), whole)
}

/** How an episode went, in a few words. */
export function facts({ metrics, outcome, return: earned, steps, attempt, branch }: RecordedEpisode): HTMLElement[] {
  const tokens = steps.reduce((sum, { reply }) => sum + reply.length, 0)
  const result = resultOf(metrics.success)
  return [
    ...(result === "untold"
      ? []
      : [
          element(
            "span",
            { class: result === "success" ? "mark good" : "mark bad" },
            result === "success" ? "✓ success" : "✗ failure",
          ),
        ]),
    ...[outcome, `return ${short(earned)}`, counted(steps.length, "step"), counted(tokens, "token")].map((fact) =>
      element("span", {}, fact),
    ),
    ...(attempt === undefined ? [] : [element("span", {}, `played again after ${counted(attempt, "failure")}`)]),
    ...(branch ? [element("span", {}, `branched off episode ${branch.of} at step ${branch.step + 1}`)] : []),
  ]
}

function compareChoice(run: string, { iteration, group, episodes }: Read["recorded"], member: number) {
  if (episodes.length < 2) return undefined
  const select = element(
    "select",
    {
      change: () => {
        location.hash = writeRoute(episodeRoute(run, iteration, group, member, { with: select.value }))
      },
    },
    element("option", { value: "" }, "another episode"),
    ...episodes
      .filter((other) => other.member !== member)
      .map((other) => element("option", { value: other.member }, named(other))),
  )
  return element("label", {}, "Compare with ", select)
}

/** An episode in a list to choose from. */
export function named({ member, metrics, return: earned }: RecordedEpisode): string {
  const sign = { success: " ✓", failure: " ✗", untold: "" }[resultOf(metrics.success)]
  return `${member}${sign}, return ${short(earned)}`
}

function copyButton(text: () => string): HTMLElement {
  const button = element("button", { type: "button", class: "quiet", "aria-live": "polite" }, "Copy as text")
  button.addEventListener("click", async () => {
    const done = await navigator.clipboard.writeText(text()).then(
      () => "Copied",
      () => "The browser did not let it be copied",
    )
    button.textContent = done
  })
  return button
}
