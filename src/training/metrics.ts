import { advantageMetrics } from "../credit/diagnostics.ts"
import type { Credit } from "../credit/estimator.ts"
import type { LossReport, StepReport } from "../engine/engine.ts"
import { type Episode, isScored } from "../rollout/episode.ts"
import type { Group } from "../rollout/hooks.ts"
import { type CriticTotals, criticMetrics } from "./critic.ts"
import { limitShares } from "./episode-shares.ts"
import { mean, meanAs } from "./mean.ts"
import { type CollectedStep, isTooSmall } from "./steps.ts"
import { meanMetrics } from "./summary.ts"

type Metrics = Record<string, number>

/**
 * What the episodes were like that were played, and how credit was spread over their steps. The means are over episodes that can be
 * learned from, the shares over all: so "episode/success", where failed and dropped ones are lost.
 *
 * @param dropped groups that were played and not kept; a policy is not worse for being asked only what it cannot do yet
 */
export function rolloutMetrics(
  groups: readonly Group[],
  credit: Credit,
  dropped: readonly Group[] = [],
  minGroupSize = 1,
): Metrics {
  const episodes = [...groups, ...dropped].flatMap((group) => group.episodes)
  const finished = episodes.filter(isScored)
  const told = { tokens: 0, prompts: 0, valid: 0, cut: 0, steps: 0, goingOn: 0, unmerged: 0 }
  for (const { steps } of finished) {
    for (const { prompt, reply, valid, finishReason, unmerged } of steps) {
      told.steps++
      told.tokens += reply.length
      told.prompts += prompt.length
      told.valid += Number(valid)
      told.cut += Number(finishReason === "length")
      if (unmerged === undefined) continue
      told.goingOn++
      told.unmerged += Number(unmerged)
    }
  }
  const aStep = (sum: number) => (told.steps === 0 ? 0 : sum / told.steps)
  const share = (outcome: Episode["outcome"]) => mean(episodes.map((episode) => Number(episode.outcome === outcome)))
  const own = Object.entries(meanMetrics(episodes)).map(([name, value]) => [`episode/${name}`, value])
  const { cut, late } = limitShares(episodes)
  const unscored = share("dropped")
  const tooSmall = groups.filter((group) => isTooSmall(group.episodes, minGroupSize)).length
  const branches = episodes.filter(({ branch }) => branch !== undefined).length
  const retried = episodes.filter(({ attempt }) => attempt !== undefined).length
  return {
    ...Object.fromEntries(own),
    "episode/count": episodes.length,
    ...(branches > 0 && { "episode/branches": branches }),
    "episode/return": mean(finished.map((episode) => episode.return)),
    "episode/steps": mean(finished.map((episode) => episode.steps.length)),
    ...(dropped.length > 0 && { "group/dropped": dropped.length }),
    ...(tooSmall > 0 && { "group/too-small": tooSmall }),
    ...(retried > 0 && { "episode/retried": retried / episodes.length }),
    "episode/failed": share("failed"),
    ...(unscored > 0 && { "episode/dropped": unscored }),
    "episode/truncated": cut,
    "episode/overflow": share("overflow"),
    ...(late !== undefined && { "episode/late": late }),
    "action/valid": aStep(told.valid),
    "completion/tokens": aStep(told.tokens),
    "completion/truncated": aStep(told.cut),
    "prompt/tokens": aStep(told.prompts),
    ...(told.goingOn > 0 && { "sequence/unmerged": told.unmerged / told.goingOn }),
    ...advantageMetrics(credit),
  }
}

/** What an iteration's optimizer steps reported. */
export interface UpdateTotals {
  readonly losses: LossReport[]
  readonly steps: StepReport[]
  readonly learningRate: number
  critic?: CriticTotals
  /** Between sampler and trainer, where the trainer's log-probabilities were at hand before its first step. */
  mismatch?: Readonly<Record<string, number>>
}

export function updateMetrics({ losses, steps, learningRate, critic, mismatch }: UpdateTotals): Metrics {
  const taken = steps.filter((step) => !step.skipped)
  // Where every advantage was 0 nothing was computed, and there is nothing to report.
  const computed = losses.filter(({ tokens }) => tokens > 0)
  return {
    ...meansOfTokens(computed), // what others name comes first, so that it hides none of those below
    ...mismatch,
    ...(critic && criticMetrics(critic)),
    ...meanAs(
      "loss/policy",
      computed.map(({ loss }) => loss),
    ),
    "optimizer/steps": taken.length,
    "optimizer/skipped": steps.length - taken.length,
    ...meanAs(
      "optimizer/gradient-norm",
      taken.map((step) => step.gradientNorm).filter(Number.isFinite), // a remote engine may not tell
    ),
    "optimizer/learning-rate": learningRate,
  }
}

/** What batches report, over the tokens of all that do. */
function meansOfTokens(reports: readonly LossReport[]): Metrics {
  const names = new Set(reports.flatMap(({ metrics }) => Object.keys(metrics)))
  const means = Array.from(names, (name) => {
    const those = reports.filter(({ metrics }) => metrics[name] !== undefined)
    return meanAs(
      name,
      those.map(({ metrics }) => metrics[name]!),
      those.map(({ tokens }) => tokens),
    )
  })
  return Object.assign({}, ...means)
}

/** Seconds spent on each part of an iteration. */
export class Stopwatch {
  readonly #laps: Record<string, number> = {}
  readonly #started: number = performance.now()
  #last: number = this.#started

  lap(name: string): void {
    const now = performance.now()
    this.#laps[`time/${name}`] = (now - this.#last) / 1000
    this.#last = now
  }

  /** With the speed over the whole iteration, prompts included. */
  metrics(steps: readonly CollectedStep[]): Metrics {
    const seconds = (performance.now() - this.#started) / 1000
    const tokens = steps.reduce((sum, { record }) => sum + record.prompt.length + record.reply.length, 0)
    return { ...this.#laps, "time/iteration": seconds, "time/tokens-per-second": tokens / seconds }
  }
}
