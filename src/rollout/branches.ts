import { isDeepStrictEqual } from "node:util"
import { playing } from "../environment/contract.ts"
import type { Observation, StepResult } from "../environment/environment.ts"
import type { Random } from "../util/random.ts"
import type { Episode, EpisodeStep } from "./episode.ts"
import type { EpisodeStart, SampledReply } from "./hooks.ts"
import type { Choice } from "./turns.ts"

// Episodes that branch off others. An episode and its branches are played one after the other, parents before their branches: so what is left
// of `rollout.maxForks` does not depend on which of them is quicker, and no more episodes are in flight than the rollout may have.

/** A state that further episodes are to begin from, while the one that came to it goes on. */
export interface Fork {
  /** The step's number in its episode. */
  readonly step: number
  readonly more: number
  readonly start: EpisodeStart
  /** What was done before it, replayed actions among them, and seen. */
  readonly turns: readonly Taken[]
  readonly now: Observation
  /** Samples a reply of an episode of these random numbers to the prompt there. */
  readonly draw: (random: Random, signal: AbortSignal) => Promise<SampledReply>
}

export interface Taken {
  readonly observation: Observation
  readonly choice: Choice & { readonly completion?: SampledReply }
}

/** Where a branch begins. */
export interface Origin extends Pick<Fork, "start" | "turns" | "now"> {
  /** The parent's steps before it. */
  readonly steps: readonly EpisodeStep[]
  /** The parent's, from which the environment has its random numbers. */
  readonly random: Random
  /** The branch's first reply, asked for beside those of the other branches while the engine still holds their prompt. */
  readonly first?: Promise<SampledReply>
}

/** How an episode comes to be, and who is told where others branch off it. */
export interface Course {
  readonly origin?: Origin | undefined
  readonly fork?: ((at: Fork) => void) | undefined
}

/** An episode and those that branched off it, in the order of their steps. */
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

/** Which episode of its family is played, 0 is the member itself, and which attempt at it. */
export interface FamilyPlace {
  readonly branch: number
  readonly attempt: number
}

/**
 * Plays an episode and its branches, each until it does not fail or may not be tried again. One that failed has no branches.
 *
 * @param forks most branches of all
 */
export async function playFamily(
  { random, forks, retries, signal }: { random: Random; forks: number; retries: number; signal: AbortSignal },
  play: (random: Random, course: Course, place: FamilyPlace) => Promise<Episode>,
): Promise<EpisodeTree> {
  const root: BranchStart = { random, step: 0, branches: [] }
  const family = [root]
  for (const [branch, sprout] of family.entries()) {
    for (let attempt = 0; sprout.episode === undefined; attempt++) {
      const own = attempt > 0 ? sprout.random.fork("attempt", attempt) : sprout.random
      const { first, ...again } = sprout.origin ?? {}
      const origin = attempt > 0 && sprout.origin ? (again as Origin) : sprout.origin
      const begun: BranchStart[] = []
      const fork = ({ step, more, draw, ...at }: Fork) => {
        for (let number = 1; number <= more && family.length + begun.length <= forks; number++) {
          const random = own.fork("branch", step, number)
          const first = draw(random, signal)
          first.catch(() => {}) // told where it is waited for, if it is
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

/** The members of a group, then their branches, in the order of parents, steps and branches. */
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
 * Throws unless the environment of a branch shows what its parent saw after so many turns, and goes on there.
 *
 * @param result what a step gave, or what was observed first
 */
export function checkBrought(name: string, { turns, now }: Origin, turn: number, result: Partial<StepResult>): void {
  const expected = turns[turn]?.observation ?? now
  const seen = ({ text, anchor, actions }: Observation) => ({ text, anchor, actions: actions && [...actions] })
  const same = isDeepStrictEqual(seen(result.observation!), seen(expected))
  if (same && !result.terminated && !result.truncated) return
  throw playing(name).broken(
    `a branch did what its parent had done and after ${turn} actions ${same ? "was at an end" : "observed something else"}; ` +
      "an episode must follow from its task, its random numbers and its actions alone (checkEnvironment says where it does not)",
  )
}
