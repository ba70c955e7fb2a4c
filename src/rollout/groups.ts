import { setImmediate } from "node:timers/promises"
import { GigpoError } from "../util/errors.ts"
import { type EpisodeTree, ordered } from "./branches.ts"
import { Deadline } from "./deadline.ts"
import type { Group } from "./hooks.ts"

export interface GroupsSetup<Task> {
  /** The first task's number, and how many groups are wanted. */
  readonly first: number
  readonly count: number
  readonly groupSize: number
  /** Episodes in flight at once. */
  readonly concurrency: number
  /** Aborted when an episode fails. */
  readonly stop: AbortController
  /** The task of this number; undefined where there are no more. */
  readonly draw: (index: number) => Promise<Task | undefined>
  /** A member with its branches. The signal is the group's, with its deadline. */
  readonly play: (task: Task, index: number, member: number, signal: AbortSignal) => Promise<EpisodeTree>
  /** Seconds for a group from its first episode on. Default: no limit. */
  readonly groupTimeout?: number | undefined
  /** Told whenever a member has been played, with how many groups there are to be as far as is known. */
  readonly onEpisode: (groups: number) => void
}

/** Plays the episodes of the tasks that follow, each task drawn as its first episode begins; fewer groups where there are no more. */
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

/** Episodes of a group are compared with each other: they must have had the same task. */
function checkUnchanged({ task, index, before }: { task: unknown; index: number; before: string | undefined }): void {
  if (before === undefined || written(task) === before) return
  throw new GigpoError(
    "BAD_ENVIRONMENT",
    `Task ${index} was changed while its episodes were played. All episodes of a group are given the same object: copy what is changed, as with structuredClone(task).`,
  )
}

/** JSON of a task; undefined where it has none. */
function written(task: unknown): string | undefined {
  try {
    return JSON.stringify(task)
  } catch {
    return undefined // circular, or with a bigint
  }
}

/** Waits for all of these works. The first to fail stops the others, and is told once every one has ended. */
export async function together<T>(works: readonly Promise<T>[], stop: AbortController): Promise<T[]> {
  for (const work of works) work.catch((error) => stop.abort(error))
  const results = await Promise.allSettled(works)
  stop.signal.throwIfAborted()
  return results.map((result) => (result as PromiseFulfilledResult<T>).value)
}
