import { setMaxListeners } from "node:events"
import type { Environment } from "../environment/environment.ts"
import { linkAbort } from "../util/linked-abort.ts"
import type { Random } from "../util/random.ts"
import { callHook, type HookCaller } from "./call-hook.ts"
import { checkSetup, isList } from "./check-setup.ts"
import type { StepLimits } from "./check-step.ts"
import type { Episode, EpisodeSetup, EpisodeStep } from "./episode.ts"
import { playGroups, together } from "./groups.ts"
import { guideGroups } from "./guide.ts"
import { checkKeep, checkScored } from "./hook-answers.ts"
import type { Group, RolloutHooks, TaskSource } from "./hooks.ts"
import { rolloutDefaults } from "./options.ts"
import type { AgentLoop } from "./play.ts"
import { playMember } from "./play-member.ts"
import { drawInOrder, listedTasks } from "./tasks.ts"
import { isVaried } from "./varied.ts"

/** Arguments of `rollout`. */
export interface RolloutSetup<Task = unknown>
  extends Omit<EpisodeSetup<Task>, "task" | "random" | "environment" | "hooks"> {
  /** Its loop plays, unless `play` does. */
  readonly environment?: Environment<Task> | undefined
  /** An agent that plays by itself, in place of an environment's loop. */
  readonly play?: AgentLoop<Task> | undefined
  readonly tasks: readonly Task[] | TaskSource<Task>
  /** Groups wanted. Default: one for each of the listed tasks; a source has no default. */
  readonly groups?: number | undefined
  /** Episodes of each task. */
  readonly groupSize: number
  /** Episode m of task t is keyed by `random.fork(t, m)`, where t counts all tasks that were drawn. */
  readonly random: Random
  /** Episodes in flight at once. */
  readonly concurrency: number
  /** Seconds for a group, from its first episode on; those of its episodes that are not over then have failed. Default: no limit. */
  readonly groupTimeout?: number | undefined
  /**
   * Most times that an episode that failed is played again: on a fresh environment, with random numbers of its own, for attempt a
   * `random.fork(t, m, "attempt", a)`. The last attempt counts. Default 0.
   */
  readonly maxRetries?: number | undefined
  /** Most branches that an episode and its branches may have, where `hooks.onTurn` forks; beyond it a fork is an accept. Default 4. */
  readonly maxForks?: number | undefined
  readonly hooks?: RolloutHooks<Task> | undefined
  /** Drop groups whose episodes all have the same return: DAPO's dynamic sampling (arXiv 2503.14476, eq. 11). Default false. */
  readonly onlyVaried?: boolean | undefined
  /** Most rounds in which groups that were dropped are replaced. Default 10. */
  readonly maxRefillRounds?: number | undefined
  /** Told whenever an episode ends, with its branches where it has some, with how many there are to be as far as is known. */
  readonly onEpisode?: ((done: number, total: number) => void) | undefined
  /** Told of every step as it happens. */
  readonly onStep?: ((step: EpisodeStep, place: StepPlace) => void) | undefined
}

/** Where a step belongs, each counted from 0. Once an attempt has failed nothing is told of it any more. */
export interface StepPlace {
  readonly task: number
  readonly member: number
  readonly attempt: number
  /** Which of the member's branches it is, from 1 in the order in which they are played; 0 is the member itself. */
  readonly branch: number
  readonly step: number
}

/** Groups in the order of their tasks. */
export interface Rollout<Task = unknown> {
  /** Fewer than were wanted where there are no more tasks, or no more refills. */
  readonly groups: readonly Group<Task>[]
  /** What `hooks.keep` dropped, and with `onlyVaried` those that taught nothing. */
  readonly dropped: readonly Group<Task>[]
}

/**
 * Plays the episodes of every task. They run side by side, each waiting only for its own environment and its own completions; what
 * comes out does not depend on how many run at once, nor on which is quicker: groups are scored when all of a round are there, in
 * the order of tasks, and what `keep` drops is replaced by the tasks that follow, in a further round.
 *
 * Rejects when the signal is aborted, or the policy or a hook fails, once every episode in flight has been ended and disposed.
 */
export async function rollout<Task>(setup: RolloutSetup<Task>): Promise<Rollout<Task>> {
  const wanted = checkSetup(setup)
  const {
    groupSize,
    concurrency,
    random,
    hooks,
    maxRefillRounds: refills = rolloutDefaults.maxRefillRounds,
    onEpisode,
  } = setup
  const { maxPositions, temperature } = setup
  const limits = { vocabularySize: setup.policy.vocabularySize, maxPositions, temperature }
  const stop = new AbortController()
  setMaxListeners(0, stop.signal) // one an episode in flight
  const unlink = linkAbort(setup.signal, stop)
  const caller = { moment: setup.moment, random, signal: stop.signal }
  const draw = drawInOrder(isList(setup.tasks) ? listedTasks(setup.tasks) : setup.tasks, caller)
  const play = (task: Task, index: number, member: number, signal: AbortSignal) =>
    playMember(setup, task, { task: index, member }, signal)
  const [kept, dropped]: [Group<Task>[], Group<Task>[]] = [[], []]
  let done = 0
  try {
    for (let round = 0; round <= refills && kept.length < wanted; round++) {
      const [first, count] = [kept.length + dropped.length, wanted - kept.length]
      const toldOf = (groups: number) => onEpisode?.(++done, (first + groups) * groupSize)
      const round = { first, count, groupSize, concurrency, groupTimeout: setup.groupTimeout }
      const played = await playGroups({ ...round, stop, draw, play, onEpisode: toldOf })
      if (played.length === 0) break
      const guided = await guideGroups(setup, played, caller, stop)
      const scored = guided.map((group) => score(hooks, group, caller, limits))
      for (const group of await together(scored, stop))
        (!setup.onlyVaried || isVaried(group)) && (await keeps(hooks, group, caller))
          ? kept.push(group)
          : dropped.push(group)
    }
    stop.signal.throwIfAborted()
    await told(hooks, [...kept, ...dropped], caller)
    return { groups: kept, dropped }
  } finally {
    unlink()
  }
}

type Hooks<Task> = RolloutHooks<Task> | undefined

async function score<Task>(
  hooks: Hooks<Task>,
  group: Group<Task>,
  caller: HookCaller,
  limits: StepLimits,
): Promise<Group<Task>> {
  if (!hooks?.score) return group
  const check = (scored: readonly Episode[]) => checkScored(group, scored, limits)
  const key = [group.index, "score"]
  return { ...group, episodes: await callHook("hooks.score", caller, key, (to) => hooks.score!(group, to), check) }
}

async function told<Task>(hooks: Hooks<Task>, groups: readonly Group<Task>[], caller: HookCaller): Promise<void> {
  if (!hooks?.played) return
  const inOrder = groups.toSorted((a, b) => a.index - b.index)
  await callHook(
    "hooks.played",
    caller,
    ["played"],
    (to) => hooks.played!(inOrder, to),
    () => {},
  )
}

async function keeps<Task>(hooks: Hooks<Task>, group: Group<Task>, caller: HookCaller): Promise<boolean> {
  if (!hooks?.keep) return true
  return await callHook("hooks.keep", caller, [group.index, "keep"], (to) => hooks.keep!(group, to), checkKeep)
}
