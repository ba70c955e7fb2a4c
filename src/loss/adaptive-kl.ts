import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import type { Stateful } from "../util/state.ts"
import { adaptiveKlFields } from "./options.ts"

/** Options of `adaptiveKl`. */
export type AdaptiveKlOptions = OptionsOf<typeof adaptiveKlFields>

/** What one update hears of the KL's error, at most. */
const maxError = 0.2

/** A KL weight that follows the KL. */
export interface AdaptiveKl extends Stateful {
  /** As it is now, above 0. */
  readonly weight: number
  /**
   * @param kl what was measured since the last update, in nats, as `target` is
   * @param steps how much it was measured on, in what `horizon` counts
   * @throws GigpoError `NON_FINITE` for a KL that is not finite, `BAD_ARGUMENT` for steps that would leave no weight.
   */
  update(kl: number, steps: number): void
}

/**
 * The adaptive KL weight of Ziegler et al. (arXiv 1909.08593, section 2.2): it grows while the KL to the reference is above its target,
 * and shrinks while it is below,
 *
 *     weight ← weight · (1 + clip(kl / target - 1, -0.2, 0.2) · steps / horizon)
 *
 * @throws GigpoError `BAD_ARGUMENT` for an option that has no meaning.
 */
export function adaptiveKl(given: AdaptiveKlOptions): AdaptiveKl {
  const { weight: first, target, horizon } = readOptions("adaptiveKl", given, adaptiveKlFields)
  let weight = first
  return {
    get weight() {
      return weight
    },
    update(kl, steps) {
      if (!Number.isFinite(kl)) throw new GigpoError("NON_FINITE", `adaptiveKl: the KL is ${kl}; give a finite number.`)
      // With as many steps as this, the smallest KL would bring the weight to 0 or below.
      const tooMany = horizon / maxError
      if (!(steps >= 0 && steps < tooMany))
        throw new GigpoError(
          "BAD_ARGUMENT",
          `adaptiveKl: ${steps} steps of one update must be at least 0 and below ${tooMany}; take a longer horizon than ${horizon}.`,
        )
      const error = Math.min(Math.max(kl / target - 1, -maxError), maxError)
      weight *= 1 + (error * steps) / horizon
    },
    state: () => ({ json: { weight } }),
    restore({ json }) {
      weight = (json as { weight: number }).weight
    },
  }
}
