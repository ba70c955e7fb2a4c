import type { Credit } from "../../credit/estimator.ts"
import type { Candidate, Episode, EpisodeStep } from "../../rollout/episode.ts"
import type { CollectedStep } from "../../training/steps.ts"
import type { RecordedPlace } from "../data/recorded.ts"
import type { Numbers } from "./packed.ts"
import { recordedImages } from "./pictures.ts"

// Metadata of a part. A part contains consecutive episodes of a group, because one part per episode would have too much overhead for short
// episodes.

/** Episode with the data to record. */
export interface Recordable {
  readonly group: number
  readonly member: number
  /** JSON. */
  readonly task: string
  readonly episode: Episode
  /** [steps] */
  readonly stepGroups: Int32Array
  /** Credit, steps in its order, and index of the episode's first step; undefined if the episode was not trained on. */
  readonly credit:
    | { readonly of: Credit; readonly first: number; readonly steps: readonly Pick<CollectedStep, "trainerLogProbs">[] }
    | undefined
}

/** Header of a part. */
export interface AboutPart {
  readonly group: number
  /** JSON of the task, in the first part of a group in a block. */
  readonly task?: string
  readonly episodes: readonly AboutEpisode[]
}

export interface AboutEpisode {
  readonly member: number
  readonly outcome: Episode["outcome"]
  readonly return: number
  readonly metrics: Readonly<Record<string, number>>
  readonly last?: RecordedPlace
  readonly error?: string
  readonly attempt?: number
  readonly branch?: NonNullable<Episode["branch"]>
  /** Number of steps of the episode. */
  readonly steps: number
  /** Whether the episode was not trained on, so that its credit in the arrays is undefined. */
  readonly left?: true
  /** Metrics of each step; absent if no step has any. */
  readonly stepMetrics?: readonly (Readonly<Record<string, number>> | null)[]
}

export const flags = { valid: 1, cutOff: 2, skipped: 4, entropies: 8, forced: 16, scored: 32 }

/** Flags of a step or of a candidate completion. */
export function flagsOf({ valid, entropies, forced, score }: Candidate & { readonly score?: number }): number {
  return (
    (valid ? flags.valid : 0) +
    (entropies ? flags.entropies : 0) +
    (forced ? flags.forced : 0) +
    (score === undefined ? 0 : flags.scored)
  )
}

/** Prefix of the columns of candidate completions. */
export const candidatePrefix = "candidate "

/** Details of the credit by the names of the arrays. */
const details = {
  discountedReturn: "returns",
  episodeAdvantage: "episodeAdvantages",
  stepAdvantage: "stepAdvantages",
}
export const detailNames = Object.keys(details) as (keyof typeof details)[]

/** Columns of the credit of all steps, and of the estimator's details. */
export function earned(part: readonly Recordable[]): Record<string, Numbers> {
  const [steps, tokens] = [count(part, () => 1), count(part, ({ completion }) => completion.length)]
  const [flagged, stepGroups] = [new Uint8Array(steps), new Int32Array(steps)]
  const known = part.find(({ credit }) => credit)?.credit
  const of = known?.of
  const levels = detailNames.filter((name) => of?.details?.[details[name]])
  const columns = Object.fromEntries(levels.map((name) => [name, new Float64Array(steps)]))
  const perToken = of && !(of.advantages instanceof Float64Array) ? new Float32Array(tokens) : undefined
  const perStep = of && !perToken ? new Float64Array(steps) : undefined
  // NaN for steps that the trainer has not read.
  const trainer = known?.steps[known.first]?.trainerLogProbs && new Float32Array(tokens).fill(Number.NaN)
  let [step, token] = [0, 0]
  for (const { episode, stepGroups: groups, credit } of part) {
    stepGroups.set(groups, step)
    for (const [at, one] of episode.steps.entries()) {
      const row = credit && credit.first + at
      const isSkipped = row !== undefined && of!.skip?.[row] === 1
      flagged[step] =
        flagsOf(one) + (one.finishReason === "length" ? flags.cutOff : 0) + (isSkipped ? flags.skipped : 0)
      if (row !== undefined) {
        if (perStep) perStep[step] = of!.advantages[row] as number
        // Advantages of a skipped step may have any value and length.
        else if (!isSkipped) perToken!.set(of!.advantages[row] as Float32Array, token)
        const scored = credit!.steps[row]?.trainerLogProbs
        if (scored) trainer?.set(scored, token)
        for (const name of levels) columns[name]![step] = of!.details![details[name]]![row]!
      }
      step++
      token += one.completion.length
    }
  }
  return {
    flags: flagged,
    stepGroups,
    ...(perStep && { advantages: perStep }),
    ...(perToken && { tokenAdvantages: perToken }),
    ...(trainer && { trainerLogProbs: trainer }),
    ...columns,
  }
}

function count(part: readonly Recordable[], of: (step: EpisodeStep) => number): number {
  let sum = 0
  for (const { episode } of part) for (const step of episode.steps) sum += of(step)
  return sum
}

export function aboutEpisode({ member, episode, credit }: Recordable): AboutEpisode {
  const { outcome, metrics, last, error, attempt, branch, steps } = episode
  return {
    member,
    outcome,
    return: episode.return,
    metrics: finite(metrics),
    ...(last && {
      last: { text: last.text, anchor: last.anchor, ...(last.images && { images: recordedImages(last) }) },
    }),
    ...(error && { error: error.message }),
    ...(attempt !== undefined && { attempt }),
    ...(branch && { branch }),
    steps: steps.length,
    ...(!credit && { left: true }),
    ...(steps.some(({ metrics: any }) => any) && {
      stepMetrics: steps.map(({ metrics: some }) => (some ? finite(some) : null)),
    }),
  }
}

/** Finite metrics, which JSON can represent. */
function finite(metrics: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(metrics).filter(([, value]) => Number.isFinite(value)))
}
