import { setMaxListeners } from "node:events"
import { checkWhole } from "../engine/check-arguments.ts"
import { GigpoError } from "../errors.ts"
import { linkAbort } from "../linked-abort.ts"
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
 *
 * Rejects when the signal is aborted or the policy fails, once every episode in flight has been ended and disposed.
 */
export async function rollout<Task>(setup: RolloutSetup<Task>): Promise<Episode[][]> {
  const { tasks, groupSize, random, concurrency, onEpisode, signal, ...episode } = setup
  checkSetup(setup)
  const stop = new AbortController()
  setMaxListeners(0, stop.signal) // one an episode in flight
  const unlink = linkAbort(signal, stop)
  const total = tasks.length * groupSize
  const groups = tasks.map(() => new Array<Episode>(groupSize))
  let [next, done] = [0, 0]
  const runner = async () => {
    while (next < total) {
      const [task, member] = [Math.floor(next / groupSize), next % groupSize]
      next++
      const own = { task: tasks[task]!, random: random.fork(task, member), signal: stop.signal }
      groups[task]![member] = await runEpisode({ ...episode, ...own })
      onEpisode?.(++done, total)
    }
  }
  try {
    // The first to fail stops the others.
    const runners = Array.from({ length: Math.min(concurrency, total) }, () => runner().catch((e) => stop.abort(e)))
    await Promise.all(runners)
    stop.signal.throwIfAborted()
    return groups
  } finally {
    unlink()
  }
}

function checkSetup({
  groupSize,
  concurrency,
  maxSteps,
  environmentTimeout,
}: Pick<RolloutSetup<unknown>, "groupSize" | "concurrency" | "maxSteps" | "environmentTimeout">): void {
  checkWhole(groupSize, "groupSize")
  checkWhole(concurrency, "concurrency")
  checkWhole(maxSteps, "maxSteps")
  if (!(environmentTimeout > 0))
    throw new GigpoError("BAD_ARGUMENT", `environmentTimeout is ${environmentTimeout}; it must be above 0 seconds.`)
}
