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

// Collapse: a policy that has found one thing to say, or nothing that can be read, and will not find its way back (RAGEN's "echo
// trap", arXiv 2504.20073). Seen in four numbers, each with a bound.

type Metrics = Readonly<Record<string, number>>

/** Advice where success is lost. */
const regain =
  "Lower optimizer.learningRate, hold the policy to its beginning (loss.klWeight), or begin with a model that succeeds more often: clone " +
  "more tasks, or take easier ones"

/** A reply repeats where more than this share of it does. */
const repeats = 0.5

/**
 * The numbers of one iteration; what cannot be told is absent.
 *
 * - guard/repetition: share of replies of which more than half repeats; see `repetition`.
 * - guard/entropy: mean entropy of the sampled tokens in nats, as the updates found it.
 * - guard/valid: share of replies that the environment could read.
 * - guard/constant: share of groups with two scored episodes or more whose returns are all equal.
 */
export function* collapseMetrics(groups: readonly Group[], metrics: Metrics): Pieces<Record<string, number>> {
  const [repeated, valid, constant] = [new Share(), new Share(), new Share()]
  for (const group of groups) {
    const scored = group.episodes.filter(isScored)
    if (scored.length >= 2) constant.add(!isVaried(group))
    for (const { steps } of scored) {
      yield
      for (const step of steps) {
        repeated.add(repetition(step.reply) > repeats)
        valid.add(step.valid)
      }
    }
  }
  return {
    ...repeated.as("guard/repetition"),
    ...(metrics["policy/entropy"] !== undefined && { "guard/entropy": metrics["policy/entropy"] }),
    ...valid.as("guard/valid"),
    ...constant.as("guard/constant"),
  }
}

/** Of how many of all something is true. */
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
    metric: "guard/repetition",
    option: "maxRepetition",
    what: "The share of replies that repeat themselves",
    advice:
      "Lower optimizer.learningRate, hold the policy to its beginning (loss.klWeight), or lower rollout.maxCompletionTokens",
  },
  {
    metric: "guard/entropy",
    option: "minEntropy",
    what: "The entropy of the sampled tokens",
    advice:
      "Reward entropy (loss.entropyWeight), raise loss.clipHigh or rollout.temperature, or lower optimizer.learningRate",
  },
  {
    metric: "guard/valid",
    option: "minValid",
    what: "The share of replies that the environment can read",
    advice:
      "Begin with a model that knows the form (gigpo sft), raise rollout.maxCompletionTokens where replies are cut, or penalise invalid replies",
  },
  {
    metric: "guard/constant",
    option: "maxConstant",
    what: "The share of groups whose returns are all equal, and so teach nothing,",
    advice:
      "Give tasks that are neither too hard nor too easy, raise groupSize or rollout.temperature, or end the run if it has learned its tasks",
  },
] as const

interface Look {
  readonly metrics: Metrics
  readonly alarms: readonly string[]
}

/**
 * Counts how long each number has stood beyond its bound, and watches whether episodes still succeed. guard/unsolved is the number of
 * episodes since one succeeded, there from the first success on.
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

  /** Takes up what a run reported before it was resumed. */
  recall({ metrics, evaluation }: Pick<IterationReport, "metrics" | "evaluation">): void {
    const { "episode/count": count, "episode/success": share } = metrics
    if (count !== undefined && share !== undefined) this.#success.add(count, Math.round(share * count))
    this.#alarms(metrics)
    this.evaluated(evaluation)
  }

  /** Sentences on an evaluation. None where `guards.collapse` is "off". */
  evaluated(evaluation: EvaluationReport | undefined): readonly string[] {
    if (this.#options.collapse === "off" || evaluation?.metrics.success === undefined) return []
    const { episodes, success } = evaluation
    const lost = this.#evaluated.add(episodes, Math.round(success * episodes))
    return lost === undefined ? [] : [`In evaluations: ${lost}. ${regain}.`]
  }

  /**
   * Looks at one iteration: its numbers, and a sentence for each that has now stood beyond its bound for `patience` iterations, told
   * once until it recovers. Neither where `guards.collapse` is "off".
   */
  *look(groups: readonly Group[], metrics: Metrics): Pieces<Look> {
    if (this.#options.collapse === "off") return { metrics: {}, alarms: [] }
    const own = yield* collapseMetrics(groups, metrics)
    const episodes = groups.flatMap((group) => group.episodes)
    const lost = this.#success.add(episodes.length, episodes.filter(isSolved).length)
    const { unsolved } = this.#success
    return {
      metrics: { ...own, ...(unsolved !== undefined && { "guard/unsolved": unsolved }) },
      alarms: [...(lost === undefined ? [] : [`${lost} (guard/unsolved). ${regain}.`]), ...this.#alarms(own)],
    }
  }

  #alarms(metrics: Metrics): string[] {
    const { patience } = this.#options
    return bounds.flatMap(({ metric, option, what, advice }) => {
      const [value, bound] = [metrics[metric], this.#options[option]]
      if (value === undefined) return []
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

/** What ends the run where `guards.collapse` is "stop". */
export function collapsed(sentences: readonly string[], iteration: number): GigpoError {
  return new GigpoError("COLLAPSED", `The policy has collapsed by iteration ${iteration}. ${sentences.join(" ")}`)
}
