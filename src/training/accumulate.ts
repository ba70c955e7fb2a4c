import type {
  LossReport,
  NativeLoss,
  SequenceUnit,
  TokenStatisticName,
  TopTokens,
  Trainable,
} from "../engine/engine.ts"
import { eachSegment, type Sequence } from "../engine/sequence.ts"
import { evaluateLoss } from "../loss/as-token-loss.ts"
import { lossInput } from "../loss/loss-input.ts"
import type { TokenLoss } from "../loss/token-loss.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import { joined } from "../util/joined.ts"
import type { Random } from "../util/random.ts"

/** Options of `accumulateGradients`. */
export interface AccumulateOptions {
  /** Progress of the run, for schedules. */
  readonly progress: TrainingProgress
  /** Generator for losses that draw random numbers. */
  readonly random: Random
  /** Temperature at which the tokens were sampled. Default 1. */
  readonly temperature?: number | undefined
  /** Unit of sequence-level ratios and means. Default "completion". */
  readonly unit?: SequenceUnit | undefined
  /** Whether the tokens are those of an expert, without log-probabilities and advantages. Default false. */
  readonly imitation?: boolean | undefined
  /** Signal that aborts the work. */
  readonly signal?: AbortSignal | undefined
}

const optionKeys: KeysOf<AccumulateOptions> = {
  progress: true,
  random: true,
  temperature: true,
  unit: true,
  imitation: true,
  signal: true,
}

/**
 * Adds the gradient of a loss over one optimizer batch to the gradients of a policy. An engine that supports the loss computes it in a
 * kernel. Otherwise the engine computes log-probabilities, the loss is evaluated once on whole sequences, and the engine computes the
 * gradient from the coefficients. Where the loss throws, all gradients are cleared, including those of earlier calls.
 */
export async function accumulateGradients(
  policy: Trainable,
  sequences: readonly Sequence[],
  loss: TokenLoss,
  options: AccumulateOptions,
): Promise<LossReport> {
  checkArguments("accumulateGradients", options, optionKeys)
  const { progress, random, temperature = 1, unit = "completion", imitation, signal } = options
  const native = nativeForm(policy, loss, progress, sequences)
  if (native) {
    const whole = native.kind === "clipped-surrogate" ? { ...native, unit } : native
    const report = await policy.forwardBackward(sequences, { ...whole, temperature }, { signal })
    return Number.isNaN(report.loss) && report.logProbs ? evaluatedReport(report, sequences, loss, options) : report
  }
  try {
    const { needs, teacherTop } = loss
    const asked = statisticsOf(loss)
    const top = asked.includes("top") ? teachersTokens(sequences) : undefined
    const statistics = await policy.logProbs(sequences, { needs: asked, top, temperature, signal })
    const input = lossInput(sequences, statistics, { needs, teacherTop, unit, imitation, progress, random })
    const output = evaluateLoss(loss, input)
    const coefficients = {
      coefficients: output.gradient,
      entropyCoefficients: output.entropyGradient,
      ...(top && output.topGradient && { top: { ...top, logProbs: output.topGradient } }),
    }
    const report = await policy.forwardBackward(sequences, { kind: "linear", ...coefficients, temperature }, { signal })
    return {
      ...report,
      loss: output.loss,
      logProbs: Float32Array.from(input.logProbs),
      metrics: { ...report.metrics, ...output.metrics },
    }
  } catch (error) {
    await policy.clearGradients().catch(() => {}) // the first error is reported
    throw error
  }
}

/**
 * Report of a loss that the engine computed, for an engine that returns log-probabilities only. Tokens that the engine skipped, because
 * their gradient is 0, count as unchanged.
 */
function evaluatedReport(
  report: LossReport,
  rows: readonly Sequence[],
  loss: TokenLoss,
  { progress, random, unit, imitation }: AccumulateOptions,
): LossReport {
  const logProbs = report.logProbs!.slice()
  eachSegment(rows, (segment, start) => {
    const before = segment.oldLogProbs ?? segment.logProbs
    for (let t = 0; t < segment.length; t++)
      if (Number.isNaN(logProbs[start + t])) logProbs[start + t] = before?.[t] ?? 0
  })
  const output = evaluateLoss(loss, lossInput(rows, { logProbs }, { unit, imitation, progress, random }))
  return { ...report, loss: output.loss, metrics: { ...report.metrics, ...output.metrics } }
}

/** Returns the statistics of the policy's distribution that a loss needs besides the log-probabilities of the sampled tokens. */
export function statisticsOf({
  needs = [],
  teacherTop = 0,
}: Pick<TokenLoss, "needs" | "teacherTop">): TokenStatisticName[] {
  const own = (["entropy", "hellinger"] as const).filter((need) => needs.includes(need))
  return teacherTop > 0 ? [...own, "top"] : own
}

/** Most likely tokens of the teacher at each sampled token. */
function teachersTokens(rows: readonly Sequence[]): Pick<TopTokens, "count" | "tokens"> {
  const all = rows.flatMap(({ segments }) => segments.map(({ teacherTop }) => teacherTop))
  const tokens = all.map((top) => top?.tokens ?? new Int32Array(0))
  return { count: all[0]?.count ?? 0, tokens: joined(Int32Array, tokens) }
}

/** Native form of the loss, where the engine can compute it. The kernels support neither token weights nor factors of the clip range. */
function nativeForm(policy: Trainable, loss: TokenLoss, progress: TrainingProgress, rows: readonly Sequence[]) {
  const native = runsItself(policy, loss.native?.(progress))
  if (!native) return undefined
  const plain = rows.every(({ segments }) =>
    segments.every((segment) => !segment.weights && segment.clipScale === undefined),
  )
  return plain ? native : undefined
}

/** Returns a native loss if the engine supports it, otherwise undefined. */
export function runsItself(policy: Trainable, native: NativeLoss | undefined): NativeLoss | undefined {
  return native && policy.losses.includes(native.kind) && (policy.supports?.(native) ?? true) ? native : undefined
}
