import { outcomes, resultOf } from "../../rollout/outcome.ts"
import type { RecordedIteration } from "../../view/record/file.ts"
import { episodeId } from "./episode-text.ts"
import { formatNumber } from "./format.ts"
import { mark } from "./last-episodes.ts"
import { table } from "./table.ts"

/** Episode in a list. */
export interface ListedEpisode {
  readonly id: string
  readonly iteration: number
  readonly group: number
  readonly member: number
  readonly task: string
  readonly outcome: string
  /** Null if the environment does not report success. */
  readonly success: number | null
  readonly return: number
  readonly steps: number
  /** Sampled tokens. */
  readonly tokens: number
}

export interface EpisodeFilter {
  /** Text that the task must contain. */
  readonly task?: string | undefined
  /**
   * Whether the episode must have succeeded. Failed episodes count as unsuccessful; episodes without reported success
   * match neither.
   */
  readonly succeeded?: boolean | undefined
}

export function listEpisodes(summary: RecordedIteration, { task, succeeded }: EpisodeFilter): ListedEpisode[] {
  const { iteration, group, member } = summary
  const all = group.map((of, at): ListedEpisode => {
    const place = { iteration, group: of, member: member[at]! }
    return {
      id: episodeId(place, place.member),
      ...place,
      task: summary.tasks[summary.task[at]!]!,
      outcome: outcomes[summary.outcome[at]!]!,
      success: summary.success[at]!,
      return: summary.return[at]!,
      steps: summary.steps[at]!,
      tokens: summary.tokens[at]!,
    }
  })
  return all.filter((one) => {
    const { outcome, success } = one
    const result = resultOf(success)
    const lost = result === "failure" || outcome === "failed" || outcome === "excluded"
    const wanted = succeeded === undefined || (succeeded ? result === "success" : lost)
    return wanted && (task === undefined || one.task.includes(task))
  })
}

/** One line per episode, after a line of headings. */
export function episodeLines(episodes: readonly ListedEpisode[]): string[] {
  const head = ["EPISODE", "", "RETURN", "STEPS", "TOKENS", "OUTCOME", "TASK"]
  const rows = episodes.map(({ id, success, return: sum, steps, tokens, outcome, task }) => [
    ...[id, mark(success), formatNumber(sum), String(steps), tokens.toLocaleString("en-US"), outcome, task],
  ])
  return table([head, ...rows], [2, 3, 4])
}
