import { oneOf } from "../options/field.ts"
import { without } from "../options/fixed.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Estimator, StepCredit } from "./estimator.ts"
import { grpoFields, settle } from "./options.ts"
import { firstSteps, outcomeEstimator } from "./outcomes.ts"
import { countGroups } from "./statistics.ts"

/** Options of `passAtK`, which compares whole episodes only. */
export const passAtKFields = {
  ...without(grpoFields, "episodeStatistics", "penaltyPlacement"),
  normalization: oneOf(
    "sample",
    ["sample", "none"],
    "Divisor of the lead of the best episode: the sample standard deviation (n - 1) of the task's returns plus epsilon " +
      '("sample"), or 1 ("none").',
  ),
}

/** Options of `passAtK`. */
export type PassAtKOptions = OptionsOf<typeof passAtKFields>

/**
 * Pass@k training (arXiv 2503.19595), with k the number of episodes of a task. The objective is that at least one episode succeeds. The
 * best episode gets R(best) - R(second), all others 0. Ties at the top give 0.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const passAtK = defineEstimator({
  name: "pass-at-k",
  fields: passAtKFields,
  about: {
    system: "pass@k",
    origin: "baseline",
    changes: ["credit"],
    equation: "A = R(best) - R(second) for the best episode, 0 for the others",
    source: "arXiv 2503.19595",
    status: "exact",
  },
  make(options: PassAtKOptions = {}): Estimator<StepCredit> {
    return outcomeEstimator(
      "pass-at-k",
      (progress) => ({
        ...settle("pass-at-k", options, passAtKFields, progress),
        episodeStatistics: "episodes" as const,
        penaltyPlacement: "reward" as const,
      }),
      ({ batch, returns, statistics }, { normalization, epsilon, singletonEpisode }) => {
        const { best, second } = bestOf(returns, batch)
        return returns.map((value, row) => {
          const task = batch.task[row]!
          if (statistics.size[task] === 1) return singletonEpisode === "raw" ? value : 0
          if (batch.episode[row] !== best[task] || statistics.std[task] === 0) return 0
          const lead = value - second[task]!
          return normalization === "sample" ? lead / (statistics.std[task]! + epsilon) : lead
        })
      },
    )
  },
})

/** Best episode of each task and the return of the second best, [tasks]. */
function bestOf(returns: Float64Array, { task: tasks, episode: episodes }: Batch) {
  const count = countGroups(tasks)
  const best = new Int32Array(count).fill(-1)
  const first = new Float64Array(count).fill(Number.NEGATIVE_INFINITY)
  const second = first.slice()
  const members = firstSteps(episodes)
  for (const [row, value] of returns.entries()) {
    if (members[row] === 0) continue
    const task = tasks[row]!
    second[task] = Math.max(second[task]!, Math.min(value, first[task]!))
    if (value <= first[task]!) continue
    first[task] = value
    best[task] = episodes[row]!
  }
  return { best, second }
}
