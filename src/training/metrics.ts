import { advantageMetrics } from "../credit/diagnostics.ts"
import type { Credit } from "../credit/estimator.ts"
import type { LossReport, OptimizerStepStatistics } from "../engine/engine.ts"
import { type Episode, isScored } from "../rollout/episode.ts"
import type { Group } from "../rollout/hooks.ts"
import { itemsOfPiece, type Pieces } from "../util/pace.ts"
import { type CriticTotals, criticMetrics } from "./critic.ts"
import { limitShares } from "./episode-shares.ts"
import { mean, meanAs } from "./mean.ts"
import { type CollectedStep, isTooSmall } from "./steps.ts"
import { meanMetricsInPieces } from "./summary.ts"

type Metrics = Record<string, number>

/**
 * Returns the metrics of a rollout, in pieces of some steps or episodes: episodes, completions and advantages. Means are over episodes that can be
 * trained on. Shares, such as "episode/success", are over all episodes; failed and excluded episodes count as unsuccessful.
 *
 * @param dropped - groups that were played and not kept. They count in the metrics, which would otherwise look worse with dynamic sampling.
 */
export function* rolloutMetrics(
  groups: readonly Group[],
  credit: Credit,
  dropped: readonly Group[] = [],
  minGroupSize = 1,
): Pieces<Metrics> {
  const episodes = [...groups, ...dropped].flatMap((group) => group.episodes)
  const finished = episodes.filter(isScored)
  const sums = { tokens: 0, prompts: 0, valid: 0, cut: 0, steps: 0, goingOn: 0, retokenized: 0 }
  for (const { steps } of finished) {
    for (const { prompt, completion, valid, finishReason, retokenized } of steps) {
      if (sums.steps % itemsOfPiece === 0) yield
      sums.steps++
      sums.tokens += completion.length
      sums.prompts += prompt.length
      sums.valid += Number(valid)
      sums.cut += Number(finishReason === "length")
      if (retokenized === undefined) continue
      sums.goingOn++
      sums.retokenized += Number(retokenized)
    }
  }
  const aStep = (sum: number) => (sums.steps === 0 ? 0 : sum / sums.steps)
  const share = (outcome: Episode["outcome"]) => mean(episodes.map((episode) => Number(episode.outcome === outcome)))
  yield
  const own = Object.entries(yield* meanMetricsInPieces(episodes)).map(([name, value]) => [`episode/${name}`, value])
  yield
  const { truncated, nearLimit } = limitShares(episodes)
  yield
  const excluded = share("excluded")
  const tooSmall = groups.filter((group) => isTooSmall(group.episodes, minGroupSize)).length
  const branches = episodes.filter(({ branch }) => branch !== undefined).length
  const retried = episodes.filter(({ attempt }) => attempt !== undefined).length
  yield
  const advantages = advantageMetrics(credit)
  yield
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
    ...(excluded > 0 && { "episode/excluded": excluded }),
    "episode/truncated": truncated,
    "episode/overflow": share("overflow"),
    ...(nearLimit !== undefined && { "episode/near-limit": nearLimit }),
    "action/valid": aStep(sums.valid),
    "completion/tokens": aStep(sums.tokens),
    "completion/truncated": aStep(sums.cut),
    "prompt/tokens": aStep(sums.prompts),
    ...(sums.goingOn > 0 && { "sequence/retokenized": sums.retokenized / sums.goingOn }),
    ...advantages,
  }
}

/** Reports of the updates of one iteration. */
export interface UpdateTotals {
  readonly losses: LossReport[]
  /** Reports of the updates on replayed sequences. */
  readonly replayed?: LossReport[]
  readonly steps: OptimizerStepStatistics[]
  readonly learningRate: number
  critic?: CriticTotals
  /** Metrics of the sampler–trainer mismatch, where log-probabilities of the trainer before the first update are known. */
  mismatch?: Readonly<Record<string, number>>
}

export function updateMetrics({ losses, replayed = [], steps, learningRate, critic, mismatch }: UpdateTotals): Metrics {
  const taken = steps.filter((step) => !step.skipped)
  // A batch whose advantages are all 0 is not computed and has no metrics.
  const computed = losses.filter(({ tokens }) => tokens > 0)
  return {
    ...meansOfTokens(computed), // metrics of engines and losses come first, so that they do not replace those below
    ...mismatch,
    ...(critic && criticMetrics(critic)),
    ...meanAs(
      "loss/policy",
      computed.map(({ loss }) => loss),
    ),
    ...replayMetrics(replayed),
    "optimizer/steps": taken.length,
    "optimizer/skipped": steps.length - taken.length,
    ...meanAs(
      "optimizer/gradient-norm",
      taken.map((step) => step.gradientNorm).filter(Number.isFinite), // a remote engine may not report the norm
    ),
    "optimizer/learning-rate": learningRate,
  }
}

/** Metrics of the updates on replayed sequences, which do not enter those of the others. */
function replayMetrics(reports: readonly LossReport[]): Metrics {
  const means = meansOfTokens(reports)
  const { "policy/ratio": ratio, "policy/cov-clipped-fraction": dropped } = means
  return {
    ...meanAs(
      "replay/loss",
      reports.map(({ loss }) => loss),
    ),
    ...(ratio !== undefined && { "replay/ratio": ratio }),
    ...(dropped !== undefined && { "replay/cov-clipped-fraction": dropped }),
  }
}

/** Mean of each metric over batches, weighted by tokens. A batch without the metric is left out. */
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

/** Stopwatch for the parts of an iteration, in seconds. */
export class Stopwatch {
  readonly #laps: Record<string, number> = {}
  readonly #started: number = performance.now()
  #last: number = this.#started

  lap(name: string): void {
    const now = performance.now()
    this.#laps[`time/${name}`] = (now - this.#last) / 1000
    this.#last = now
  }

  /** Returns the times of all parts, and the throughput of the iteration in prompt and completion tokens per second. */
  metrics(steps: readonly CollectedStep[]): Metrics {
    const seconds = (performance.now() - this.#started) / 1000
    const tokens = steps.reduce((sum, { record }) => sum + record.prompt.length + record.completion.length, 0)
    return { ...this.#laps, "time/iteration": seconds, "time/tokens-per-second": tokens / seconds }
  }
}
