import type { LossReport, Trainable, Unit } from "../engine/engine.ts"
import type { Row } from "../engine/rows.ts"
import { evaluateLoss } from "../loss/as-token-loss.ts"
import { lossInput } from "../loss/loss-input.ts"
import type { TokenLoss } from "../loss/token-loss.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import type { Moment } from "../options/schedule.ts"
import type { Random } from "../random.ts"

export interface AccumulateOptions {
  readonly moment: Moment
  /** For losses that draw. */
  readonly random: Random
  /** What the rows were sampled at. Default 1. */
  readonly temperature?: number | undefined
  /** Default "span". */
  readonly unit?: Unit | undefined
  /** The rows are an expert's: they have no credit and were not sampled. Default false. */
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
  rows: readonly Row[],
  loss: TokenLoss,
  options: AccumulateOptions,
): Promise<LossReport> {
  checkArguments("accumulate", options, optionKeys)
  const { moment, random, temperature = 1, unit = "span", imitation, signal } = options
  const native = nativeForm(policy, loss, moment, rows)
  if (native) {
    const whole = native.kind === "clipped-surrogate" ? { ...native, unit } : native
    return await policy.forwardBackward(rows, { ...whole, temperature }, { signal })
  }
  try {
    const needs = loss.needs?.includes("entropy") ? (["entropy"] as const) : []
    const statistics = await policy.logProbs(rows, { needs, temperature, signal })
    const input = lossInput(rows, statistics, { needs: loss.needs, unit, imitation, moment, random })
    const output = evaluateLoss(loss, input)
    const coefficients = { coefficients: output.gradient, entropyCoefficients: output.entropyGradient }
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

/** What the engine is to run itself. Weights of tokens and clips of their own are beyond the built-in losses' kernels. */
function nativeForm(policy: Trainable, loss: TokenLoss, moment: Moment, rows: readonly Row[]) {
  const native = loss.native?.(moment)
  if (!native || !policy.losses.includes(native.kind)) return undefined
  const plain = rows.every(({ spans }) => spans.every((span) => !span.weights && span.clipScale === undefined))
  return plain ? native : undefined
}
