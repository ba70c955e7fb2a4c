import type { Environment } from "../environment/environment.ts"
import type { Random } from "../util/random.ts"
import type { EpisodeSetup, EpisodeStep } from "./episode.ts"
import type { Group, RolloutHooks, TaskSource } from "./hooks.ts"
import type { AgentLoop } from "./play.ts"

/** Arguments of `rollout`. */
export interface RolloutSetup<Task = unknown>
  extends Omit<EpisodeSetup<Task>, "task" | "random" | "environment" | "hooks"> {
  /** Environment. Its episodes are played by the built-in loop unless `agentLoop` is given. */
  readonly environment?: Environment<Task> | undefined
  /** Agent loop that plays the episodes instead of the built-in loop. */
  readonly agentLoop?: AgentLoop<Task> | undefined
  /** List or source of tasks. */
  readonly tasks: readonly Task[] | TaskSource<Task>
  /** Number of groups. Default: one for each task of a list; required with a source. */
  readonly groups?: number | undefined
  /** Number of episodes per task. */
  readonly groupSize: number
  /** Root of the random numbers. Those of episode m of task t are `random.derive(t, m)`, where t counts all drawn tasks. */
  readonly random: Random
  /** Number of episodes in progress at once. */
  readonly concurrency: number
  /** Time limit of a group in seconds, from the start of its first episode. Unfinished episodes fail then. Default: none. */
  readonly groupTimeout?: number | undefined
  /**
   * Maximum number of retries of a failed episode: on a new environment episode, with the random numbers `random.derive(t, m, "attempt", a)` for
   * attempt a. The last attempt counts. Default 0.
   */
  readonly maxRetries?: number | undefined
  /** Maximum number of branches of an episode in total, if `hooks.onTurn` returns `branch`. Beyond it `branch` counts as `accept`. Default 4. */
  readonly maxBranches?: number | undefined
  /** Hooks of the rollout. */
  readonly hooks?: RolloutHooks<Task> | undefined
  /** Whether to drop groups whose returns are all equal: DAPO's dynamic sampling (arXiv 2503.14476, eq. 11). Default false. */
  readonly dynamicSampling?: boolean | undefined
  /** Maximum number of rounds in which dropped groups are replaced. Default 10. */
  readonly maxRefillRounds?: number | undefined
  /** Called after each episode (with its branches), with the numbers of played and expected episodes. */
  readonly onEpisode?: ((done: number, total: number) => void) | undefined
  /** Called after each step. */
  readonly onStep?: ((step: EpisodeStep, place: StepLocation) => void) | undefined
}

/** Place of a step in a rollout. Indices count from 0. No steps are reported of an attempt that has failed. */
export interface StepLocation {
  /** Index of the task in the iteration, from 0. */
  readonly task: number
  /** Index of the episode in its group, from 0. */
  readonly member: number
  /** Number of failed attempts before this one. */
  readonly attempt: number
  /** Number of the branch of the member, from 1 in order of play; 0 for the member itself. */
  readonly branch: number
  /** Index of the step in the episode, from 0. */
  readonly step: number
}

/** Result of a rollout. Groups are in the order of their tasks. */
export interface Rollout<Task = unknown> {
  /** Groups to learn from. Fewer than requested if there are no more tasks or refill rounds. */
  readonly groups: readonly Group<Task>[]
  /** Groups that `hooks.keep` dropped, and with `dynamicSampling` groups whose returns are all equal. */
  readonly dropped: readonly Group<Task>[]
}

/**
 * Plays groups of episodes with a policy.
 *
 * Episodes run concurrently. Results do not depend on the concurrency or on timing: groups are scored after all groups of a round have been
 * played, in the order of tasks, and dropped groups are replaced by further tasks in another round.
 *
 * @throws GigpoError errors of the policy or a hook, and `BAD_ARGUMENT` for an invalid argument. An abort of the signal throws its reason. All
 * episodes in progress are ended and disposed of before.
 */
export async function rollout<Task>(setup: RolloutSetup<Task>): Promise<Rollout<Task>> {
  const { playRollout } = await import("./play-rollout.ts")
  return await playRollout(setup)
}
