import type { KlEstimator } from "../engine/engine.ts"
import { type AdaptiveKl, adaptiveKl } from "../loss/adaptive-kl.ts"
import { adaptiveKlFields, lossFields } from "../loss/options.ts"
import { oneOf, optionalGroup } from "../options/field.ts"
import { without } from "../options/fixed.ts"
import type { Scheduled } from "../options/schedule.ts"
import type { Resolved } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"

const adaptiveFields = { ...without(adaptiveKlFields, "weight") }

/** Where the KL to the reference stands and what becomes of its weight, beside the options of the KL term itself. */
export const klFields = {
  klPlacement: oneOf(
    "loss",
    ["loss", "reward"],
    "Whether the KL is a term of the loss, or is taken off the reward of each token, as the policy that sampled it had it.",
  ),
  adaptiveKl: optionalGroup(
    adaptiveFields,
    "Adapt klWeight after every iteration, to lead the KL to a target.",
    "klWeight stays what it is",
  ),
}

/** What stands around any policy loss in training. */
export const aroundLoss = { ...lossFields, ...klFields }

/** The KL of a training. */
export interface Kl {
  readonly place: "loss" | "reward"
  readonly estimator: KlEstimator
  readonly weight: Scheduled
  /** Where the weight adapts, and over how many steps. */
  readonly controller?: AdaptiveKl
  readonly horizon: number
}

interface KlOptions extends Resolved<typeof klFields> {
  readonly klWeight: Scheduled
  readonly klEstimator: KlEstimator
}

/** @throws GigpoError `BAD_ARGUMENT` where a weight that adapts is a schedule, or is 0. */
export function makeKl({ klWeight, klEstimator, klPlacement, adaptiveKl: adaptive }: KlOptions): Kl {
  const { horizon = 0 } = adaptive ?? {}
  const kl = { place: klPlacement, estimator: klEstimator, weight: klWeight, horizon }
  if (!adaptive) return kl
  if (typeof klWeight !== "number" || klWeight === 0)
    throw new GigpoError(
      "BAD_ARGUMENT",
      "loss.adaptiveKl adapts klWeight, which must be a number above 0 to begin with.",
    )
  const controller = adaptiveKl({ weight: klWeight, ...adaptive })
  return { ...kl, weight: () => controller.weight, controller }
}

/** Adapts the weight to how far the policy lay from the reference in this iteration. Reports the weight that the next one has. */
export function adaptKl(
  { controller, horizon, place }: Kl,
  metrics: Readonly<Record<string, number>>,
  steps: number,
): Record<string, number> {
  if (!controller) return {}
  const kl = metrics[place === "loss" ? "loss/kl" : "reward/kl"]
  // Where no step was taken nothing was measured. More steps than the horizon say no more than the horizon does.
  if (kl !== undefined) controller.update(kl, Math.min(steps, horizon))
  return { [`${place}/kl-weight`]: controller.weight }
}
