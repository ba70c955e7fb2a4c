import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import type { Stateful } from "../util/state.ts"
import { adaptiveKlFields } from "./options.ts"

/** Options of `adaptiveKl`. */
export type AdaptiveKlOptions = OptionsOf<typeof adaptiveKlFields>

/** Bound of the relative error of the KL in one update. */
const maxError = 0.2

/** Controller of the KL weight. */
export interface AdaptiveKl extends Stateful {
  /** Current weight of the KL penalty, above 0. */
  readonly weight: number
  /**
   * Changes the weight by a measured KL.
   *
   * @param kl - mean KL since the last update, in nats like `target`.
   * @param steps - number of steps that the KL was measured on, in the unit of `horizon`.
   * @throws GigpoError `NON_FINITE` for a KL that is not finite, `BAD_ARGUMENT` for so many steps that the weight could reach 0.
   */
  update(kl: number, steps: number): void
}

/**
 * Adaptive KL controller of Ziegler et al. (arXiv 1909.08593, section 2.2). The weight grows while the KL to the reference policy is above
 * the target, and shrinks while the KL is below:
 *
 *     weight ← weight · (1 + clip(kl / target - 1, -0.2, 0.2) · steps / horizon)
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
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
      // From this number of steps on, a KL of 0 would make the weight 0 or negative.
      const tooMany = horizon / maxError
      if (!(steps >= 0 && steps < tooMany))
        throw new GigpoError(
          "BAD_ARGUMENT",
          `adaptiveKl: steps is ${steps}; it must be at least 0 and below ${tooMany}. Use a horizon longer than ${horizon}.`,
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
