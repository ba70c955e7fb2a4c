import { metricMeaning, metricTitle } from "../../../runs/metrics.ts"
import { visible } from "../../../util/visible.ts"
import { element } from "../element.ts"

/** Explanation of a metric with its name in files, and the button that shows it. */
export function metricHelp(name: string): { readonly button: HTMLElement; readonly text: HTMLElement } {
  const meaning = metricMeaning(name) ?? "A metric of this run's loss, estimator or environment."
  const text = element("p", { class: "meaning", hidden: true }, `${meaning} `, element("code", {}, visible(name)))
  const button = element(
    "button",
    {
      type: "button",
      class: "what",
      "aria-label": `What is ${visible(metricTitle(name))}?`,
      "aria-expanded": "false",
      click: () => {
        text.hidden = !text.hidden
        button.setAttribute("aria-expanded", String(!text.hidden))
      },
    },
    "?",
  )
  return { button, text }
}
