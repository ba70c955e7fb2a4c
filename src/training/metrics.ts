import type { GigpoDiagnostics, GrpoDiagnostics } from "../credit/types.ts"
import type { LossReport, StepReport } from "../engine/engine.ts"
import type { Episode } from "../rollout/episode.ts"
import { mean, meanMetrics } from "./evaluate.ts"
import type { CollectedStep } from "./rows.ts"

type Metrics = Record<string, number>

/** What the episodes were like and how credit was spread over their steps. */
export function rolloutMetrics(
  groups: readonly (readonly Episode[])[],
  diagnostics: GrpoDiagnostics | GigpoDiagnostics,
): Metrics {
  const episodes = groups.flat()
  const finished = episodes.filter((episode) => episode.outcome !== "failed")
  const steps = finished.flatMap((episode) => episode.steps)
  const share = (outcome: Episode["outcome"]) => mean(episodes.map((episode) => Number(episode.outcome === outcome)))
  const own = Object.entries(meanMetrics(finished)).map(([name, value]) => [`episode/${name}`, value])
  const metrics: Metrics = {
    ...Object.fromEntries(own), // first, so that they hide none of those below
    "episode/count": episodes.length,
    "episode/return": mean(finished.map((episode) => episode.return)),
    "episode/steps": mean(finished.map((episode) => episode.steps.length)),
    "episode/failed": share("failed"),
    "episode/truncated": share("truncated"),
    "episode/overflow": share("overflow"),
    "reply/valid": mean(steps.map((step) => Number(step.valid))),
    "reply/tokens": mean(steps.map((step) => step.reply.length)),
    "reply/cut": mean(steps.map((step) => Number(step.finishReason === "length"))),
    "prompt/tokens": mean(steps.map((step) => step.prompt.length)),
    "advantage/mean": diagnostics.advantageMean,
    "advantage/std": diagnostics.advantageStd,
    "group/constant": diagnostics.constantEpisodeGroups / diagnostics.episodeGroups,
  }
  if ("stepGroups" in diagnostics) {
    metrics["step-group/count"] = diagnostics.stepGroups
    metrics["step-group/size"] = diagnostics.meanStepGroupSize
    metrics["step-group/singletons"] = diagnostics.singletonShare
    metrics["advantage/step-share"] = diagnostics.stepShare
  }
  return metrics
}

/** What an iteration's optimizer steps reported. */
export interface UpdateTotals {
  readonly losses: LossReport[]
  readonly steps: StepReport[]
  readonly learningRate: number
}

export function updateMetrics({ losses, steps, learningRate }: UpdateTotals): Metrics {
  const taken = steps.filter((step) => !step.skipped)
  return {
    "loss/policy": mean(losses.map((report) => report.loss)),
    "loss/kl": mean(losses.map((report) => report.kl)),
    "policy/entropy": mean(losses.map((report) => report.entropy)),
    "policy/clip-fraction": mean(losses.map((report) => report.clipFraction)),
    "policy/kl": mean(losses.map((report) => report.policyKl)),
    "policy/ratio": mean(losses.map((report) => report.ratio)),
    "optimizer/steps": taken.length,
    "optimizer/skipped": steps.length - taken.length,
    "optimizer/gradient-norm": mean(taken.map((step) => step.gradientNorm)),
    "optimizer/learning-rate": learningRate,
  }
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
    const tokens = steps.reduce((sum, { step }) => sum + step.prompt.length + step.reply.length, 0)
    return { ...this.#laps, "time/iteration": seconds, "time/tokens-per-second": tokens / seconds }
  }
}
