import { mean } from "./earned.ts"
import { Gathered } from "./gathered.ts"
import type { RecordedEpisode, RecordedGroup, RecordedStep } from "./recorded.ts"

/** Step with its episode. */
export interface Standing {
  readonly episode: RecordedEpisode
  /** Index in the episode, from 0. */
  readonly at: number
  readonly step: RecordedStep
}

/** Steps of a group by step group, in the order of first occurrence; each by episode, then step. */
export function standings({ episodes }: RecordedGroup): ReadonlyMap<number, readonly Standing[]> {
  const groups = new Gathered<number, Standing>()
  for (const episode of episodes)
    for (const [at, step] of episode.steps.entries()) groups.add(step.stepGroup, { episode, at, step })
  return new Map(groups.map((standing, stepGroup) => [stepGroup, standing]))
}

/** Number of episodes of the steps. */
export function episodesIn(standing: readonly Standing[] = []): number {
  return new Set(standing.map(({ episode }) => episode)).size
}

/** Steps with the same action in a state, with their mean return and step advantage. */
export interface ActionTaken {
  readonly action: string
  readonly taken: readonly Standing[]
  /** Means over the steps with a value; absent if there are none. */
  readonly discountedReturn?: number
  readonly stepAdvantage?: number
}

/** Comparison of GiGPO in a state: its actions, by descending return. */
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
