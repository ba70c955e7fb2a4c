import type { LossReport, NativeLoss, Statistic, TopTokens, Trainable, Unit } from "../engine/engine.ts"
import { eachSpan, type Sequence } from "../engine/rows.ts"
import { evaluateLoss } from "../loss/as-token-loss.ts"
import { lossInput } from "../loss/loss-input.ts"
import type { TokenLoss } from "../loss/token-loss.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import { joined } from "../util/joined.ts"
import type { Random } from "../util/random.ts"

/** Options of `accumulate`. */
export interface AccumulateOptions {
  readonly moment: TrainingProgress
  /** For losses that draw. */
  readonly random: Random
  /** What the rows were sampled at. Default 1. */
  readonly temperature?: number | undefined
  /** Default "span". */
  readonly unit?: Unit | undefined
  /** The rows are an expert's: they need no credit and were not sampled. Default false. */
  readonly imitation?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

const optionKeys: KeysOf<AccumulateOptions> = {
  moment: true,
  random: true,
  temperature: true,
  unit: true,
  imitation: true,
  signal: true,
}

/**
 * Adds the gradient of a loss over one optimizer batch. An engine that knows the loss runs it in its kernel; for any other the
 * log-probabilities are taken, the loss is evaluated once on whole sequences, and its coefficients go back to the engine. A loss
 * that throws leaves no gradients behind, those of earlier calls neither.
 */
export async function accumulate(
  policy: Trainable,
  rows: readonly Sequence[],
  loss: TokenLoss,
  options: AccumulateOptions,
): Promise<LossReport> {
  checkArguments("accumulate", options, optionKeys)
  const { moment, random, temperature = 1, unit = "span", imitation, signal } = options
  const native = nativeForm(policy, loss, moment, rows)
  if (native) {
    const whole = native.kind === "clipped-surrogate" ? { ...native, unit } : native
    const report = await policy.forwardBackward(rows, { ...whole, temperature }, { signal })
    return Number.isNaN(report.loss) && report.logProbs ? told(report, rows, loss, options) : report
  }
  try {
    const { needs, teacherTop } = loss
    const asked = statisticsOf(loss)
    const top = asked.includes("top") ? teachersTokens(rows) : undefined
    const statistics = await policy.logProbs(rows, { needs: asked, top, temperature, signal })
    const input = lossInput(rows, statistics, { needs, teacherTop, unit, imitation, moment, random })
    const output = evaluateLoss(loss, input)
    const coefficients = {
      coefficients: output.gradient,
      entropyCoefficients: output.entropyGradient,
      ...(top && output.topGradient && { top: { ...top, logProbs: output.topGradient } }),
    }
    const report = await policy.forwardBackward(rows, { kind: "linear", ...coefficients, temperature }, { signal })
    return {
      ...report,
      loss: output.loss,
      logProbs: Float32Array.from(input.logProbs),
      metrics: { ...report.metrics, ...output.metrics },
    }
  } catch (error) {
    await policy.clearGradients().catch(() => {}) // what went wrong first is what to tell
    throw error
  }
}

/**
 * What came of a loss that the engine ran itself and tells only the log-probabilities of. Tokens that it had no need to compute,
 * since nothing was to be learned from them, count as unchanged.
 */
function told(
  report: LossReport,
  rows: readonly Sequence[],
  loss: TokenLoss,
  { moment, random, unit, imitation }: AccumulateOptions,
): LossReport {
  const logProbs = report.logProbs!.slice()
  eachSpan(rows, (span, start) => {
    const before = span.oldLogProbs ?? span.logProbs
    for (let t = 0; t < span.length; t++) if (Number.isNaN(logProbs[start + t])) logProbs[start + t] = before?.[t] ?? 0
  })
  const output = evaluateLoss(loss, lossInput(rows, { logProbs }, { unit, imitation, moment, random }))
  return { ...report, loss: output.loss, metrics: { ...report.metrics, ...output.metrics } }
}

/** What a loss reads of the policy's own distribution, beside the sampled tokens' log-probabilities. */
export function statisticsOf({ needs = [], teacherTop = 0 }: Pick<TokenLoss, "needs" | "teacherTop">): Statistic[] {
  const own = (["entropy", "hellinger"] as const).filter((need) => needs.includes(need))
  return teacherTop > 0 ? [...own, "top"] : own
}

/** The teacher's most likely tokens at each sampled token of the rows. */
function teachersTokens(rows: readonly Sequence[]): Pick<TopTokens, "count" | "tokens"> {
  const all = rows.flatMap(({ spans }) => spans.map(({ teacherTop }) => teacherTop))
  const tokens = all.map((top) => top?.tokens ?? new Int32Array(0))
  return { count: all[0]?.count ?? 0, tokens: joined(Int32Array, tokens) }
}

/** What the engine is to run itself. Weights of tokens and clips of their own are beyond the built-in losses' kernels. */
function nativeForm(policy: Trainable, loss: TokenLoss, moment: TrainingProgress, rows: readonly Sequence[]) {
  const native = runsItself(policy, loss.native?.(moment))
  if (!native) return undefined
  const plain = rows.every(({ spans }) => spans.every((span) => !span.weights && span.clipScale === undefined))
  return plain ? native : undefined
}

/** The loss, where the engine runs it itself. */
export function runsItself(policy: Trainable, native: NativeLoss | undefined): NativeLoss | undefined {
  return native && policy.losses.includes(native.kind) && (policy.runs?.(native) ?? true) ? native : undefined
}
