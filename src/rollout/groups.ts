import { setImmediate } from "node:timers/promises"
import { GigpoError } from "../util/errors.ts"
import { type EpisodeTree, ordered } from "./branches.ts"
import { Deadline } from "./deadline.ts"
import type { Group } from "./hooks.ts"

export interface GroupsSetup<Task> {
  /** Index of the first task. */
  readonly first: number
  /** Number of groups. */
  readonly count: number
  readonly groupSize: number
  /** Number of episodes in progress at once. */
  readonly concurrency: number
  /** Aborted when an episode fails. */
  readonly stop: AbortController
  /** Returns the task with this index; undefined if there are no more. */
  readonly draw: (index: number) => Promise<Task | undefined>
  /** Plays a member with its branches. The signal is that of the group, with its deadline. */
  readonly play: (task: Task, index: number, member: number, signal: AbortSignal) => Promise<EpisodeTree>
  /** Time limit of a group in seconds, from the start of its first episode. Default: none. */
  readonly groupTimeout?: number | undefined
  /** Called after each member with the expected number of groups. */
  readonly onEpisode: (groups: number) => void
}

/** Plays groups of the next tasks. A task is drawn when its first episode starts. Returns fewer groups if there are no more tasks. */
export async function playGroups<Task>(setup: GroupsSetup<Task>): Promise<Group<Task>[]> {
  const { first, groupSize, concurrency, stop, draw, play, onEpisode } = setup
  const groups: { task: Task; index: number; before: string | undefined; members: EpisodeTree[] }[] = []
  const deadlines: Deadline[] = []
  const begin = (index: number): Deadline => {
    const deadline = new Deadline(stop.signal)
    deadline.set("groupTimeout", `The group of task ${index}`, setup.groupTimeout)
    return deadline
  }
  let { count } = setup
  let next = 0
  const runner = async () => {
    while (next < count * groupSize) {
      const [place, member] = [Math.floor(next / groupSize), next % groupSize]
      next++
      const index = first + place
      const task = await draw(index)
      if (task === undefined) {
        count = Math.min(count, place)
        return
      }
      groups[place] ??= { task, index, before: written(task), members: [] }
      deadlines[place] ??= begin(index)
      groups[place].members[member] = await play(task, index, member, deadlines[place].signal)
      onEpisode(count)
    }
  }
  try {
    await together(Array.from({ length: Math.min(concurrency, count * groupSize) }, runner), stop)
  } finally {
    for (const deadline of deadlines) deadline?.[Symbol.dispose]()
  }
  await setImmediate() // thousands have just ended at once
  for (const group of groups) checkUnchanged(group)
  return groups.map(({ members, task, index }) => ({ task, index, episodes: ordered(members) }))
}

/** Checks that the episodes of a group did not change their task: they are compared with each other. */
function checkUnchanged({ task, index, before }: { task: unknown; index: number; before: string | undefined }): void {
  if (before === undefined || written(task) === before) return
  throw new GigpoError(
    "BAD_ENVIRONMENT",
    `Task ${index} was changed while its episodes were played. All episodes of a group receive the same object: change a copy instead, for example structuredClone(task).`,
  )
}

/** JSON of a task; undefined for a task that JSON cannot write. */
function written(task: unknown): string | undefined {
  try {
    return JSON.stringify(task)
  } catch {
    return undefined // circular, or with a bigint
  }
}

/** Waits for all promises. The first error aborts the others, and is thrown after all have ended. */
export async function together<T>(works: readonly Promise<T>[], stop: AbortController): Promise<T[]> {
  for (const work of works) work.catch((error) => stop.abort(error))
  const results = await Promise.allSettled(works)
  stop.signal.throwIfAborted()
  return results.map((result) => (result as PromiseFulfilledResult<T>).value)
}
