import type { Group } from "../../rollout/hooks.ts"
import { type FailureReason, mergeFailures } from "../../runs/failure-reasons.ts"
import type { EvaluationReport, IterationReport } from "../../runs/report.ts"
import type { RunObserver } from "../../training/observers.ts"
import type { StageProgress } from "../../training/progress.ts"
import { describeReason } from "./failures.ts"
import { formatBar, formatDuration, formatNumber, formatShare } from "./format.ts"
import { lastEpisodes } from "./last-episodes.ts"
import type { Line, Screen } from "./screen.ts"
import { TrainingCurves } from "./training-curves.ts"

const outcome = [
  ["episode/success", "success"],
  ["episode/return", "return"],
  ["episode/steps", "steps"],
  ["episode/failed", "failed"],
  ["action/valid", "valid"],
] as const

const learning = [
  ["loss/policy", "loss"],
  ["policy/kl", "KL(old)"],
  ["policy/entropy", "entropy"],
  ["optimizer/gradient-norm", "gradient"],
] as const

/** Maximum number of episodes shown. */
const mostEpisodes = 4

/** Display of a training run: a redrawn block on a terminal, elsewhere one line per iteration. */
export class TrainingView {
  readonly #screen: Screen
  readonly #iterations: number
  readonly #first: number
  readonly #started: number = performance.now()
  #last: IterationReport | undefined
  #evaluated: string | undefined
  readonly #curves: TrainingCurves
  /** Rendered lines instead of the episodes, which are large. */
  #played: readonly Line[] = []
  /** Failures in this process. */
  #failures: readonly FailureReason[] = []

  /**
   * @param iterations - total iterations of the run.
   * @param first - iterations before this process.
   * @param earlier - reports of these iterations.
   */
  constructor(screen: Screen, iterations: number, first: number, earlier: readonly IterationReport[] = []) {
    this.#screen = screen
    this.#curves = new TrainingCurves(earlier.filter(({ iteration }) => iteration <= first))
    this.#iterations = iterations
    this.#first = first
  }

  /** Observers that collect the last episodes, on a terminal only. */
  get observers(): readonly RunObserver[] {
    if (!this.#screen.live) return []
    const episodes = (iteration: number, groups: readonly Group[]) => {
      this.#played = lastEpisodes(iteration, groups, mostEpisodes)
    }
    return [{ name: "terminal", episodes }]
  }

  progress(progress: StageProgress): void {
    this.#screen.show(this.#block(progress), progress.done === progress.total)
  }

  report(report: IterationReport): void {
    const { iteration, evaluation } = report
    if (iteration > 0) this.#last = report
    this.#curves.add(report)
    if (evaluation) this.#evaluated = `evaluation after ${iteration}: ${describeEvaluation(evaluation)}`
    if (this.#screen.live) this.#screen.show(this.#block(), true)
    else this.#printLines(report)
    this.#printFailures([...(report.failures ?? []), ...(evaluation?.failures ?? [])])
    if (report.stopped !== undefined)
      this.#screen.print(
        `The run ends after iteration ${iteration} of ${this.#iterations}: ${report.stopped}. To continue, raise that limit and ` +
          "resume the run.",
      )
  }

  /** Reasons of failed episodes, most frequent first. */
  get failures(): readonly string[] {
    return this.#failures.slice(0, 5).map(describeReason)
  }

  /** Prints each reason once, when it first occurs. */
  #printFailures(failures: readonly FailureReason[]): void {
    for (const failure of failures) {
      const merged = mergeFailures(this.#failures, [failure])
      if (merged.length > this.#failures.length) this.#screen.print(`Episodes fail: ${describeReason(failure)}.`)
      this.#failures = merged
    }
  }

  #printLines(report: IterationReport): void {
    const { iteration, metrics, evaluation } = report
    if (iteration > 0) {
      const shown = [...pick(metrics, outcome), ...pick(metrics, learning), ...this.#pace(report)]
      this.#screen.print([`iteration ${iteration}/${this.#iterations}`, ...shown].join("  "))
    }
    if (evaluation && this.#evaluated) this.#screen.print(this.#evaluated)
  }

  #block(progress?: StageProgress): Line[] {
    const completed = this.#last?.iteration ?? this.#first
    const current = Math.min(completed + 1, this.#iterations)
    const bar = formatBar(progress?.done ?? 0, progress?.total ?? 0, 20)
    const metrics = this.#last?.metrics ?? {}
    const numbers = [
      progress
        ? `iteration ${current}/${this.#iterations}  ${bar}  ${progress.stage} ${progress.done}/${progress.total}`
        : `iteration ${completed}/${this.#iterations} done`,
      pick(metrics, outcome).join("   "),
      pick(metrics, learning).join("   "),
      this.#last ? this.#pace(this.#last).join("   ") : "",
      this.#evaluated ?? "",
    ].filter((line) => line !== "")
    const { width, rows } = this.#screen
    const curves = this.#curves.lines(width)
    const drawn = numbers.length + curves.length <= rows ? [...numbers, ...curves] : numbers
    const [title, ...episodes] = this.#played
    const room = rows - drawn.length - 1
    return title !== undefined && room > 0 ? [...drawn, title, ...episodes.slice(-room)] : drawn
  }

  #pace({ iteration, metrics }: IterationReport): string[] {
    const speed = metrics["time/tokens-per-second"]
    const seconds = (performance.now() - this.#started) / 1000
    const left = (seconds / Math.max(iteration - this.#first, 1)) * (this.#iterations - iteration)
    return [
      ...(speed === undefined ? [] : [`${formatNumber(speed)} tokens/s`]),
      `${formatDuration(seconds)} elapsed`,
      ...(left > 0 ? [`about ${formatDuration(left)} left`] : []),
    ]
  }
}

/** Formats an evaluation: "success 43.0 % (95 %: 37.1 % to 49.1 %), return 1.92, steps 9.1". */
export function describeEvaluation(report: EvaluationReport): string {
  return [
    `success ${describeSuccess(report)}`,
    `return ${formatNumber(report.meanReturn)}`,
    `steps ${formatNumber(report.meanSteps)}`,
    ...(report.failed > 0 ? [`${formatShare(report.failed)} failed`] : []),
    ...(report.excluded === undefined ? [] : [`${formatShare(report.excluded)} excluded`]),
  ].join(", ")
}

/** Success rate with its interval, or "not reported". */
export function describeSuccess({ success, successInterval: [low, high], metrics }: EvaluationReport): string {
  if (metrics.success === undefined) return "not reported"
  return `${formatShare(success)} (95 %: ${formatShare(low)} to ${formatShare(high)})`
}

function pick(
  metrics: Readonly<Record<string, number>>,
  names: readonly (readonly [metric: string, label: string])[],
): string[] {
  return names.flatMap(([metric, label]) => {
    const value = metrics[metric]
    if (value === undefined || (label === "failed" && value === 0)) return []
    return [`${label} ${formatNumber(value)}`]
  })
}
