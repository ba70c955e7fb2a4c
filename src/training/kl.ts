import type { KlEstimator } from "../engine/engine.ts"
import { type AdaptiveKl, adaptiveKl } from "../loss/adaptive-kl.ts"
import { adaptiveKlFields, lossFields } from "../loss/options.ts"
import { oneOf, optionalGroup } from "../options/field.ts"
import { without } from "../options/fixed.ts"
import type { Scheduled } from "../options/schedule.ts"
import type { ResolvedOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"

const adaptiveFields = { ...without(adaptiveKlFields, "weight") }

/** Options of the placement and adaptation of the KL penalty. */
export const klFields = {
  klPlacement: oneOf(
    "loss",
    ["loss", "reward"],
    "Whether the KL penalty is a term of the loss, or is subtracted from the reward of each token, measured at the old policy.",
  ),
  adaptiveKl: optionalGroup(
    adaptiveFields,
    "Adaptive KL controller, which changes klWeight after each iteration to reach a target KL.",
    "klWeight is not adapted",
  ),
}

/** Options that all policy losses have in training. */
export const aroundLoss = { ...lossFields, ...klFields }

/** KL penalty of a training run. */
export interface Kl {
  readonly place: "loss" | "reward"
  readonly estimator: KlEstimator
  readonly weight: Scheduled
  /** Controller of the weight, if the weight is adapted. */
  readonly controller?: AdaptiveKl
  /** Horizon of the controller in steps; 0 without a controller. */
  readonly horizon: number
}

interface KlOptions extends ResolvedOf<typeof klFields> {
  readonly klWeight: Scheduled
  readonly klEstimator: KlEstimator
}

/**
 * Makes the KL penalty of a training run.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an adaptive weight that is a schedule or 0.
 */
export function makeKl({ klWeight, klEstimator, klPlacement, adaptiveKl: adaptive }: KlOptions): Kl {
  const { horizon = 0 } = adaptive ?? {}
  const kl = { place: klPlacement, estimator: klEstimator, weight: klWeight, horizon }
  if (!adaptive) return kl
  if (typeof klWeight !== "number" || klWeight === 0)
    throw new GigpoError(
      "BAD_ARGUMENT",
      "loss.adaptiveKl needs an initial klWeight: set loss.klWeight to a number above 0.",
    )
  const controller = adaptiveKl({ weight: klWeight, ...adaptive })
  return { ...kl, weight: () => controller.weight, controller }
}

/** Adapts the weight to the KL of an iteration. Reports the weight of the next iteration. */
export function adaptKl(
  { controller, horizon, place }: Kl,
  metrics: Readonly<Record<string, number>>,
  steps: number,
): Record<string, number> {
  if (!controller) return {}
  const kl = metrics[place === "loss" ? "loss/kl" : "reward/kl"]
  // Without an update there is no measured KL. The number of steps is bounded by the horizon, which keeps the weight positive.
  if (kl !== undefined) controller.update(kl, Math.min(steps, horizon))
  return { [`${place}/kl-weight`]: controller.weight }
}
