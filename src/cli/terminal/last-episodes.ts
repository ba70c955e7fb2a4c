import { display } from "../../options/display.ts"
import type { Group } from "../../rollout/hooks.ts"
import { resultOf } from "../../rollout/outcome.ts"
import { formatNumber } from "./format.ts"
import type { Line } from "./screen.ts"
import { table } from "./table.ts"

/** Results of one episode of each of the last tasks: a heading and at most `count` lines. */
export function lastEpisodes(iteration: number, groups: readonly Group[], count: number): Line[] {
  const shown = groups
    .flatMap(({ task, episodes }) => episodes.slice(-1).map((one) => ({ task, ...one })))
    .slice(-count)
  const rows = shown.map(({ task, metrics, return: sum, steps, outcome }) => [
    mark(metrics.success),
    `return ${formatNumber(sum)}`,
    `${steps.length} steps`,
    outcome,
    shortTask(task),
  ])
  const lines = table(rows, [1, 2]).map((text, at): Line => {
    const result = resultOf(shown[at]!.metrics.success)
    return result === "untold" ? text : { text, style: result === "success" ? "green" : "dim" }
  })
  return [`episodes of iteration ${iteration}`, ...lines]
}

/** Task, shortened to fit a line. */
function shortTask(task: unknown): string {
  const characters = [...display(task)]
  return characters.length > 40 ? `${characters.slice(0, 39).join("")}…` : characters.join("")
}

/** Mark of success or failure; a dot if the environment reports neither. */
export function mark(success: number | null | undefined): string {
  return { success: "✓", failure: "✗", untold: "·" }[resultOf(success)]
}
