import { isScored } from "../../rollout/episode.ts"
import type { Group } from "../../rollout/hooks.ts"
import { isVaried } from "../../rollout/varied.ts"
import type { EvaluationReport, IterationReport } from "../../runs/report.ts"
import { GigpoError } from "../../util/errors.ts"
import type { Pieces } from "../../util/pace.ts"
import { isSolved } from "../summary.ts"
import type { GuardOptions } from "./options.ts"
import { repetition } from "./repetition.ts"
import { SuccessWatch } from "./success.ts"

// Detection of collapse: loss of entropy, of valid actions or of differing returns, from which a run seldom recovers (the "echo trap" of
// RAGEN, arXiv 2504.20073). Four metrics have bounds: two of the guard, "policy/entropy" and "action/valid".

type Metrics = Readonly<Record<string, number>>

/** Advice for a run whose episodes no longer succeed. */
const regain =
  "Lower optimizer.learningRate, add a KL penalty (loss.klWeight), or start from a model that succeeds more often: fine-tune on more tasks " +
  "(gigpo sft), or use easier tasks"

const repetitionMetric = "guard/repetition"
/** Share of repeated tokens above which a completion counts as repetitive. */
const repeats = 0.5

/**
 * Computes the metrics of collapse of one iteration. A metric without data is absent.
 *
 * - guard/repetition: share of completions more than half of which is repeated; see `repetition`.
 * - guard/constant: share of groups whose returns are all equal, among groups with at least two scored episodes.
 */
export function* collapseMetrics(groups: readonly Group[]): Pieces<Record<string, number>> {
  const [repeated, constant] = [new Share(), new Share()]
  for (const group of groups) {
    const scored = group.episodes.filter(isScored)
    if (scored.length >= 2) constant.add(!isVaried(group))
    for (const { steps } of scored) {
      yield
      for (const step of steps) repeated.add(repetition(step.completion) > repeats)
    }
  }
  return { ...repeated.as(repetitionMetric), ...constant.as("guard/constant") }
}

/** Counter of a share. */
class Share {
  #all = 0
  #count = 0

  add(is: boolean): void {
    this.#all++
    this.#count += Number(is)
  }

  as(name: string): Record<string, number> {
    return this.#all === 0 ? {} : { [name]: this.#count / this.#all }
  }
}

const bounds = [
  {
    metric: repetitionMetric,
    option: "maxRepetition",
    what: "The share of repetitive completions",
    advice: "Lower optimizer.learningRate, add a KL penalty (loss.klWeight), or lower rollout.maxCompletionTokens",
  },
  {
    metric: "policy/entropy",
    option: "minEntropy",
    what: "The entropy of the sampled tokens",
    advice:
      "Add an entropy bonus (loss.entropyWeight), raise loss.clipHigh or rollout.temperature, or lower optimizer.learningRate",
  },
  {
    metric: "action/valid",
    option: "minValid",
    what: "The share of completions with a valid action",
    advice:
      "Fine-tune the model on the action format first (gigpo sft), raise rollout.maxCompletionTokens if completions are truncated, or penalize invalid actions",
  },
  {
    metric: "guard/constant",
    option: "maxConstant",
    what: "The share of groups with equal returns, whose advantages are 0,",
    advice:
      "Use tasks that are neither too hard nor too easy, raise groupSize or rollout.temperature, or end the run if the tasks are solved",
  },
] as const

interface Look {
  readonly metrics: Metrics
  readonly alarms: readonly string[]
}

/**
 * Detector of collapse. Counts for how many iterations each metric has been beyond its bound, and detects the loss of success.
 * guard/episodes-since-success is the number of episodes since the last success, present from the first success on.
 */
export class CollapseDetector {
  readonly #options: GuardOptions
  readonly #beyond: Map<string, number> = new Map()
  readonly #success: SuccessWatch
  readonly #evaluated: SuccessWatch

  constructor(options: GuardOptions) {
    this.#options = options
    this.#success = new SuccessWatch(options.lostSuccess)
    this.#evaluated = new SuccessWatch(options.lostSuccess)
  }

  /** Restores the counts from a report of a resumed run. */
  recall({ metrics, evaluation }: Pick<IterationReport, "metrics" | "evaluation">): void {
    const { "episode/count": count, "episode/success": share } = metrics
    if (count !== undefined && share !== undefined) this.#success.add(count, Math.round(share * count))
    this.#alarms(metrics)
    this.evaluated(evaluation)
  }

  /** Returns warnings about an evaluation. None if `guards.collapse` is "off". */
  evaluated(evaluation: EvaluationReport | undefined): readonly string[] {
    if (this.#options.collapse === "off" || evaluation?.metrics.success === undefined) return []
    const { episodes, success } = evaluation
    const lost = this.#evaluated.add(episodes, Math.round(success * episodes))
    return lost === undefined ? [] : [`In evaluations: ${lost}. ${regain}.`]
  }

  /**
   * Returns the metrics of one iteration that the guard adds to the given ones, and an alarm for each metric that has been beyond its bound for `patience` iterations. An alarm
   * is repeated only after the metric has recovered. Both are empty if `guards.collapse` is "off".
   */
  *look(groups: readonly Group[], metrics: Metrics): Pieces<Look> {
    if (this.#options.collapse === "off") return { metrics: {}, alarms: [] }
    const own = yield* collapseMetrics(groups)
    const episodes = groups.flatMap((group) => group.episodes)
    const lost = this.#success.add(episodes.length, episodes.filter(isSolved).length)
    const { unsolved } = this.#success
    return {
      metrics: { ...own, ...(unsolved !== undefined && { "guard/episodes-since-success": unsolved }) },
      alarms: [
        ...(lost === undefined ? [] : [`${lost} (guard/episodes-since-success). ${regain}.`]),
        ...this.#alarms({ ...metrics, ...own }),
      ],
    }
  }

  #alarms(metrics: Metrics): string[] {
    const { patience } = this.#options
    return bounds.flatMap(({ metric, option, what, advice }) => {
      const [value, bound] = [metrics[metric], this.#options[option]]
      // Without scored completions there is nothing to check, and a log written with `collapse` "off" does not count.
      const isChecked = metric.startsWith("guard/") || metrics[repetitionMetric] !== undefined
      if (value === undefined || !isChecked) return []
      const isMaximum = option.startsWith("max")
      const count = (isMaximum ? value > bound : value < bound) ? (this.#beyond.get(metric) ?? 0) + 1 : 0
      this.#beyond.set(metric, count)
      if (count !== patience) return []
      const place = `${isMaximum ? "above" : "below"} its bound of ${bound} (guards.${option})`
      const long = patience === 1 ? "in this iteration" : `for ${patience} iterations in a row`
      const how = `${Number(value.toPrecision(3))} (${metric}), ${place} ${long}`
      return [`${what} is ${how}. ${advice}.`]
    })
  }
}

/** Error that ends the run if `guards.collapse` is "stop". */
export function collapsed(sentences: readonly string[], iteration: number): GigpoError {
  return new GigpoError("COLLAPSED", `The policy has collapsed by iteration ${iteration}. ${sentences.join(" ")}`)
}
