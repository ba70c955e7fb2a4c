import type { EngineRequirements, NativeLoss } from "../engine.ts"
import type { Capabilities } from "./capabilities.ts"

/**
 * Whether the server computes this loss itself, as intended; others are passed as coefficients of log-probabilities.
 */
export function runs(loss: NativeLoss, capabilities: Capabilities | undefined): boolean {
  if (!capabilities?.logProbs) return false
  if (loss.kind === "cross-entropy") return capabilities.customLoss !== undefined
  const plain =
    loss.importanceSamplingLevel === "token" &&
    loss.klWeight === 0 &&
    loss.entropyWeight === 0 &&
    loss.clipDual === Infinity
  // Bounds of the ratio: [0, 1] and above 1.
  return plain && capabilities.clippedSurrogate && loss.clipLow <= 1 && loss.clipHigh >= 0
}

/** Unsupported parts of a run's plan, with alternatives. */
export function refusals(plan: EngineRequirements, capabilities: Capabilities): string[] {
  const { optimizer, statistics, models, temperature = 1 } = plan
  const { maxGradientNorm = 1 } = optimizer
  const all: (readonly [boolean, string])[] = [
    [plan.critic === true, "It cannot train a critic: choose an estimator that needs no values."],
    [
      plan.entropyCoefficients || statistics.includes("entropy"),
      "It reports no entropies: set loss.entropyWeight to 0, and choose an estimator and a loss that need none.",
    ],
    [
      statistics.some((statistic) => statistic !== "entropy"),
      "It reports log-probabilities of sampled tokens only: choose a loss that needs no others.",
    ],
    [
      models.includes("reference") && !capabilities.reference,
      "It has no reference policy: set loss.klWeight to 0, and use no KL penalty in the reward.",
    ],
    [
      plan.loss === "linear" && capabilities.customLoss === undefined,
      "It supports no custom losses: choose the clipped surrogate, with loss.clipDual: .inf and loss.klWeight: 0.",
    ],
    [
      Number.isFinite(maxGradientNorm) && !capabilities.gradientClipping,
      "It does not clip gradients: set optimizer.maxGradientNorm to .inf, and configure clipping on the server.",
    ],
    [temperature !== 1, `Its trainer supports temperature 1 only, not ${temperature}: set rollout.temperature to 1.`],
  ]
  return all.flatMap(([applies, sentence]) => (applies ? [sentence] : []))
}
