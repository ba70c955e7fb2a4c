import type { GigpoStep } from "../credit/types.ts"
import type { Row } from "../engine/engine.ts"
import type { Random } from "../random.ts"
import type { Episode, EpisodeStep } from "../rollout/episode.ts"

/** One step of a finished episode, with what the estimators ask. */
export interface CollectedStep extends GigpoStep {
  readonly step: EpisodeStep
}

/** The steps of all episodes but the failed ones, in the order of tasks, members and time. */
export function collectSteps(groups: readonly (readonly Episode[])[]): CollectedStep[] {
  return groups.flatMap((group, task) =>
    group.flatMap((episode, member) =>
      episode.outcome === "failed"
        ? []
        : episode.steps.map((step) => ({
            task,
            episode: member,
            anchor: step.observation.anchor,
            reward: step.reward,
            valid: step.valid,
            step,
          })),
    ),
  )
}

/** Training rows, one a step. */
export function toRows(steps: readonly CollectedStep[], advantages: ArrayLike<number>): Row[] {
  return steps.map(({ step }, index) => ({
    prompt: step.prompt,
    reply: step.reply,
    logProbs: step.logProbs,
    advantage: advantages[index]!,
  }))
}

/** Rows that belong together: those of one task, whose steps often share their prompts, which are then computed once. */
export function byTask<T>(rows: readonly T[], steps: readonly CollectedStep[]): T[][] {
  const tasks = new Map<CollectedStep["task"], T[]>()
  for (const [index, { task }] of steps.entries()) {
    const group = tasks.get(task) ?? []
    group.push(rows[index]!)
    tasks.set(task, group)
  }
  return [...tasks.values()]
}

/**
 * All rows once, with the groups in a random order, in batches of at most `size` rows and nearly equal number. The rows of a
 * group stand side by side; a long one may be cut between two batches.
 */
export function batches<T>(groups: readonly (readonly T[])[], size: number, random: Random): T[][] {
  const rows = random.shuffled(groups).flat()
  const count = Math.max(Math.ceil(rows.length / size), 1)
  const cut = (batch: number) => Math.round((batch * rows.length) / count)
  return Array.from({ length: count }, (_, batch) => rows.slice(cut(batch), cut(batch + 1)))
}
