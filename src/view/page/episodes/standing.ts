import type { RecordedGroup } from "../../data/recorded.ts"
import { byAction, episodesIn, type Standing } from "../../data/step-groups.ts"
import { actionText } from "../../data/tool-calls.ts"
import { element } from "../element.ts"
import { edgedText } from "../long-text.ts"
import { counted, short, signed, tone } from "../numbers.ts"
import { writeRoute } from "../view.ts"
import { episodeRoute, taskRoute } from "./routes.ts"

/** Number of linked steps of an action that are shown at first. */
const several = 12

/** Actions of the group's episodes in the state of this step with their returns: the comparison behind the step advantage. */
export function comparison(
  run: string,
  recorded: RecordedGroup,
  standing: readonly Standing[],
  here: Standing,
): HTMLElement {
  const count = episodesIn(standing)
  const title = `${count} of ${counted(recorded.episodes.length, "episode")} visited this state`
  const all = element(
    "a",
    { href: writeRoute(taskRoute(run, recorded.iteration, recorded.group, here.step.stepGroup)) },
    "list them",
  )
  if (standing.length === 1)
    return element("p", { class: "standing alone" }, `${title}: no other step to compare with.`)
  const rows = byAction(standing).map(({ action, taken, discountedReturn, stepAdvantage }) =>
    element(
      "tr",
      action === here.step.action ? { class: "done", "aria-current": "true" } : {},
      element("th", { scope: "row" }, edgedText(actionText(action), 120)),
      element("td", {}, `${taken.length}×`),
      element("td", {}, short(discountedReturn)),
      element("td", { class: tone(stepAdvantage) }, signed(stepAdvantage)),
      element("td", {}, element("div", { class: "steps" }, ...links(run, recorded, taken, here))),
    ),
  )
  const heads = ["Action", "Count", "Mean discounted return", "Step advantage", "Episode · step → return"]
  return element(
    "details",
    { class: "standing", open: count > 1 },
    element("summary", {}, title),
    element(
      "div",
      { class: "scrolled", tabindex: 0, role: "region", "aria-label": `Actions in the state of step ${here.at + 1}` },
      element(
        "table",
        { class: "ruled" },
        element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
        element("tbody", {}, ...rows),
      ),
    ),
    element("p", {}, `${counted(standing.length, "step")} of step group ${here.step.stepGroup}: `, all),
  )
}

function links(run: string, { iteration, group }: RecordedGroup, taken: readonly Standing[], here: Standing): Node[] {
  const unseen = (word: string) => element("span", { class: "unseen" }, word)
  const one = ({ episode, at, step }: Standing) => {
    const [name, words] =
      episode === here.episode && at === here.at
        ? (["span", { class: "this" }] as const)
        : ([
            "a",
            { href: writeRoute(episodeRoute(run, iteration, group, episode.member, { step: String(at) })) },
          ] as const)
    return element(
      name,
      words,
      unseen("Episode "),
      `${episode.member} · `,
      unseen("step "),
      `${at + 1} → `,
      unseen("return "),
      short(step.discountedReturn),
    )
  }
  const rest = taken.slice(several)
  const button = element(
    "button",
    { type: "button", class: "more", click: () => button.replaceWith(...rest.map(one)) },
    `${rest.length} more`,
  )
  return [...taken.slice(0, several).map(one), ...(rest.length > 0 ? [button] : [])]
}
