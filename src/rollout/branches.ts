import { isDeepStrictEqual } from "node:util"
import { playing } from "../environment/contract.ts"
import type { Observation, StepResult } from "../environment/environment.ts"
import type { Random } from "../util/random.ts"
import type { Episode, EpisodeStep } from "./episode.ts"
import type { EpisodeStart, SampledCompletion } from "./hooks.ts"
import type { Choice } from "./turns.ts"

// Branches of episodes. An episode and its branches are played one after another, parents first. So the use of `rollout.maxBranches` does
// not depend on timing, and the number of episodes in progress stays within the concurrency of the rollout.

/** State from which branches start. The episode that reached the state continues. */
export interface Fork {
  /** Index of the step in its episode. */
  readonly step: number
  readonly more: number
  readonly start: EpisodeStart
  /** Earlier turns, including replayed actions. */
  readonly turns: readonly Taken[]
  readonly now: Observation
  /** Samples a completion for the prompt in this state, with the random numbers of a branch. */
  readonly draw: (random: Random, signal: AbortSignal) => Promise<SampledCompletion>
}

export interface Taken {
  readonly observation: Observation
  readonly choice: Choice & { readonly completion?: SampledCompletion }
}

/** Start of a branch. */
export interface Origin extends Pick<Fork, "start" | "turns" | "now"> {
  /** Steps of the parent before the branch. */
  readonly steps: readonly EpisodeStep[]
  /** Random numbers of the parent, from which those of the environment are derived. */
  readonly random: Random
  /** First completion of the branch, requested together with those of the other branches, since the engine still holds their prompt. */
  readonly first?: Promise<SampledCompletion>
}

/** Origin of an episode, and a callback for its forks. */
export interface Course {
  readonly origin?: Origin | undefined
  readonly fork?: ((at: Fork) => void) | undefined
}

/** Episode with its branches, in the order of their steps. */
export interface EpisodeTree {
  readonly episode: Episode
  readonly branches: readonly (EpisodeTree & { readonly step: number })[]
}

interface BranchStart {
  readonly random: Random
  readonly step: number
  readonly origin?: Origin
  readonly branches: BranchStart[]
  episode?: Episode
}

/** Place of an episode in its family: index of the branch (0 for the member itself), and number of the attempt. */
export interface FamilyPlace {
  readonly branch: number
  readonly attempt: number
}

/**
 * Plays an episode and its branches, with retries of failed episodes. A failed episode has no branches.
 *
 * @param forks - maximum number of branches in total.
 */
export async function playFamily(
  { random, forks, retries, signal }: { random: Random; forks: number; retries: number; signal: AbortSignal },
  play: (random: Random, course: Course, place: FamilyPlace) => Promise<Episode>,
): Promise<EpisodeTree> {
  const root: BranchStart = { random, step: 0, branches: [] }
  const family = [root]
  for (const [branch, sprout] of family.entries()) {
    for (let attempt = 0; sprout.episode === undefined; attempt++) {
      const own = attempt > 0 ? sprout.random.derive("attempt", attempt) : sprout.random
      const { first, ...again } = sprout.origin ?? {}
      const origin = attempt > 0 && sprout.origin ? (again as Origin) : sprout.origin
      const begun: BranchStart[] = []
      const fork = ({ step, more, draw, ...at }: Fork) => {
        for (let number = 1; number <= more && family.length + begun.length <= forks; number++) {
          const random = own.derive("branch", step, number)
          const first = draw(random, signal)
          first.catch(() => {}) // reported where the promise is awaited, if it is
          const from = { ...at, steps: [], random: sprout.origin?.random ?? own, first }
          begun.push({ random, step, origin: from, branches: [] })
        }
      }
      const episode = await play(own, { origin, fork }, { branch, attempt })
      const isFailed = episode.outcome === "failed"
      if (isFailed && attempt < retries && !signal.aborted) continue
      sprout.episode = attempt > 0 ? { ...episode, attempt } : episode
      if (isFailed) continue
      for (const { origin, ...child } of begun)
        sprout.branches.push({ ...child, origin: { ...origin!, steps: episode.steps.slice(0, child.step) } })
      family.push(...sprout.branches)
    }
  }
  return root as EpisodeTree
}

/** Returns the members of a group, followed by their branches in the order of parents, steps and branches. */
export function ordered(members: readonly EpisodeTree[]): Episode[] {
  const all = [...members]
  const episodes = members.map(({ episode }) => episode)
  for (const [of, { branches }] of all.entries())
    for (const branch of branches) {
      all.push(branch)
      episodes.push({ ...branch.episode, branch: { of, step: branch.step } })
    }
  return episodes
}

/**
 * Checks that the environment of a branch reproduces the observations of the parent. Throws if they differ or the episode ends earlier.
 *
 * @param result - result of a step, or the first observation.
 */
export function checkBrought(name: string, { turns, now }: Origin, turn: number, result: Partial<StepResult>): void {
  const expected = turns[turn]?.observation ?? now
  const seen = ({ text, anchor, actions }: Observation) => ({ text, anchor, actions: actions && [...actions] })
  const same = isDeepStrictEqual(seen(result.observation!), seen(expected))
  if (same && !result.terminated && !result.truncated) return
  throw playing(name).broken(
    `a branch repeated the actions of its parent, but after ${turn} actions ${same ? "the episode had ended" : "the observation differed"}; ` +
      "an episode must depend only on its task, its random numbers and its actions (checkEnvironment finds violations)",
  )
}
