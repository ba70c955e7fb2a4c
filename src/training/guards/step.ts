import type { AdamWParameters, LossReport, OptimizerStepStatistics, Trainable } from "../../engine/engine.ts"
import type { Sequence } from "../../engine/sequence.ts"
import type { TokenLoss } from "../../loss/token-loss.ts"
import { GigpoError } from "../../util/errors.ts"
import { type AccumulateOptions, accumulateGradients } from "../accumulate.ts"

/** Result of one optimizer step. */
export interface UpdateResult {
  /** Report of the loss. Absent if the loss is not finite. */
  readonly report?: LossReport
  /** Report of the optimizer. The gradient norm is NaN if the loss is not finite. */
  readonly step: OptimizerStepStatistics
  /** Reason of a skipped step, with the code NON_FINITE. The weights are unchanged and the gradients cleared. */
  readonly error?: GigpoError
}

/**
 * Computes the gradient of a loss and takes an optimizer step. The step is skipped if the loss or the gradient is not finite.
 *
 * @param onChange - called before the weights may change.
 */
export async function takeStep(
  policy: Trainable,
  rows: readonly Sequence[],
  loss: TokenLoss,
  how: AccumulateOptions,
  adamw: AdamWParameters,
  onChange?: () => void,
): Promise<UpdateResult> {
  let report: LossReport
  try {
    report = await accumulateGradients(policy, rows, loss, how)
    if (!Number.isFinite(report.loss)) throw nonFinite(`The loss ${loss.name} is ${report.loss}.`)
  } catch (error) {
    if (!isNonFinite(error)) throw error
    await policy.clearGradients()
    return { step: { gradientNorm: Number.NaN, skipped: true }, error }
  }
  onChange?.()
  const step = await policy.optimizerStep(adamw)
  if (!step.skipped) return { report, step }
  return { report, step, error: nonFinite(`The norm of the gradient is ${step.gradientNorm}.`) }
}

export function isNonFinite(error: unknown): error is GigpoError {
  return GigpoError.is(error) && error.code === "NON_FINITE"
}

export function nonFinite(message: string, cause?: unknown): GigpoError {
  return new GigpoError("NON_FINITE", message, { cause })
}
