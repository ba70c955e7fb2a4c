import { mean } from "./earned.ts"
import { Gathered } from "./gathered.ts"
import type { RecordedEpisode, RecordedGroup, RecordedStep } from "./recorded.ts"

/** A step, and whose it is. */
export interface Standing {
  readonly episode: RecordedEpisode
  /** Its place in the episode, from 0. */
  readonly at: number
  readonly step: RecordedStep
}

/** The steps of a task that stood in each state, by step group in the order of first occurrence; each by episode, then step. */
export function standings({ episodes }: RecordedGroup): ReadonlyMap<number, readonly Standing[]> {
  const groups = new Gathered<number, Standing>()
  for (const episode of episodes)
    for (const [at, step] of episode.steps.entries()) groups.add(step.stepGroup, { episode, at, step })
  return new Map(groups.map((standing, stepGroup) => [stepGroup, standing]))
}

/** How many episodes these steps are of. */
export function episodesIn(standing: readonly Standing[] = []): number {
  return new Set(standing.map(({ episode }) => episode)).size
}

/** What was done in one state in the same way, and what it earned. */
export interface ActionTaken {
  readonly action: string
  readonly taken: readonly Standing[]
  /** Means over the steps that have them; absent where none does. */
  readonly discountedReturn?: number
  readonly stepAdvantage?: number
}

/** The comparison that GiGPO makes in a state: its actions, the one that earned most first. */
export function byAction(standing: readonly Standing[]): ActionTaken[] {
  const actions = new Gathered<string, Standing>()
  for (const one of standing) actions.add(one.step.action, one)
  const all = actions.map((taken, action): ActionTaken => {
    const [discountedReturn, stepAdvantage] = (["discountedReturn", "stepAdvantage"] as const).map((name) =>
      mean(taken.map(({ step }) => step[name])),
    )
    return {
      action,
      taken,
      ...(discountedReturn !== undefined && { discountedReturn }),
      ...(stepAdvantage !== undefined && { stepAdvantage }),
    }
  })
  return all.sort((a, b) => (b.discountedReturn ?? 0) - (a.discountedReturn ?? 0))
}
