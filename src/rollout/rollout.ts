import type { Random } from "../random.ts"
import { type Episode, type EpisodeSetup, runEpisode } from "./episode.ts"

export interface RolloutSetup<Task> extends Omit<EpisodeSetup<Task>, "task" | "random"> {
  readonly tasks: readonly Task[]
  /** Episodes of each task. */
  readonly groupSize: number
  /** Episode m of task t is keyed by `random.fork(t, m)`. */
  readonly random: Random
  /** Episodes in flight at once. */
  readonly concurrency: number
  /** Told whenever an episode ends. */
  readonly onEpisode?: (done: number, total: number) => void
}

/**
 * The episodes of every task, [task][member]. They run side by side, each waiting only for its own environment and its own
 * completions; what comes out does not depend on how many run at once.
 */
export async function rollout<Task>(setup: RolloutSetup<Task>): Promise<Episode[][]> {
  const { tasks, groupSize, random, concurrency, onEpisode, ...episode } = setup
  const total = tasks.length * groupSize
  const groups = tasks.map(() => new Array<Episode>(groupSize))
  let [next, done] = [0, 0]
  const runner = async () => {
    while (next < total) {
      const [task, member] = [Math.floor(next / groupSize), next % groupSize]
      next++
      groups[task]![member] = await runEpisode({ ...episode, task: tasks[task]!, random: random.fork(task, member) })
      onEpisode?.(++done, total)
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, total) }, runner))
  return groups
}
