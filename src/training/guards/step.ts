import type { AdamWStep, LossReport, StepReport, Trainable } from "../../engine/engine.ts"
import type { Sequence } from "../../engine/rows.ts"
import type { TokenLoss } from "../../loss/token-loss.ts"
import { GigpoError } from "../../util/errors.ts"
import { type AccumulateOptions, accumulate } from "../accumulate.ts"

/** What came of one optimizer step. */
export interface StepOutcome {
  /** Absent where there is no finite loss. */
  readonly report?: LossReport
  /** Its norm is NaN where there is no finite loss. */
  readonly step: StepReport
  /** Why it was skipped, with the code NON_FINITE: the weights are as they were, the gradients are gone. */
  readonly error?: GigpoError
}

/**
 * Gradient of the loss and optimizer step, unless the loss or the gradient is not finite.
 *
 * @param onChange called before the weights may change
 */
export async function takeStep(
  policy: Trainable,
  rows: readonly Sequence[],
  loss: TokenLoss,
  how: AccumulateOptions,
  adamw: AdamWStep,
  onChange?: () => void,
): Promise<StepOutcome> {
  let report: LossReport
  try {
    report = await accumulate(policy, rows, loss, how)
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
