import type { NativeLoss, RunPlan } from "../engine.ts"
import type { Capabilities } from "./capabilities.ts"

/** Whether the server runs this loss itself, as it is meant; any other comes as coefficients of log-probabilities. */
export function runs(loss: NativeLoss, capabilities: Capabilities | undefined): boolean {
  if (!capabilities?.tellsLogProbs) return false
  if (loss.kind === "cross-entropy") return capabilities.custom !== undefined
  const plain = loss.ratio === "token" && loss.klWeight === 0 && loss.entropyWeight === 0 && loss.clipDual === Infinity
  // Bounds of the ratio: [0, 1] and above 1.
  return plain && capabilities.clips && loss.clipLow <= 1 && loss.clipHigh >= 0
}

/** What of a run's plan a server cannot do, and what could be set instead. */
export function refusals(plan: RunPlan, capabilities: Capabilities): string[] {
  const { optimizer, statistics, models, temperature = 1 } = plan
  const { maxGradientNorm = 1 } = optimizer
  const all: (readonly [boolean, string])[] = [
    [plan.critic === true, "It trains no critic: take an estimator that needs no values."],
    [
      plan.entropyCoefficients || statistics.includes("entropy"),
      "It tells no entropies: set loss.entropyWeight to 0, and take an estimator and a loss that need none.",
    ],
    [
      statistics.some((statistic) => statistic !== "entropy"),
      "It tells no other tokens' log-probabilities: take a loss that reads those of sampled tokens alone.",
    ],
    [
      models.includes("reference") && !capabilities.reference,
      "It keeps no reference policy: set loss.klWeight to 0, and use no KL in the reward.",
    ],
    [
      plan.loss === "linear" && capabilities.custom === undefined,
      "It runs no losses of one's own: take the clipped surrogate, with loss.clipDual: .inf and loss.klWeight: 0.",
    ],
    [
      Number.isFinite(maxGradientNorm) && !capabilities.clipsGradients,
      "It does not scale gradients down to a norm: set optimizer.maxGradientNorm to .inf, and the norm in the server's own configuration.",
    ],
    [temperature !== 1, `Its trainer knows temperature 1 only, not ${temperature}: set rollout.temperature to 1.`],
  ]
  return all.flatMap(([applies, sentence]) => (applies ? [sentence] : []))
}
