import type { AtMoment } from "../options/schedule.ts"
import type { Fields, OptionsOf, Resolved } from "../options/table.ts"
import type { Batch, Estimator, EstimatorContext, StepCredit } from "./estimator.ts"
import { gigpo } from "./gigpo.ts"
import { type GigpoOptions, outsideRuns, settle } from "./options.ts"
import type { GigpoParts } from "./parts.ts"

/** GiGPO's options and parts, as `gigpo` takes them. */
export type GigpoSetup = GigpoOptions & { readonly [name in keyof GigpoParts]?: GigpoParts[name] | undefined }

/**
 * GiGPO with other parts, an estimator of its own: its options come to GiGPO's options and parts anew for every batch, and so may the
 * parts be prepared from it. Metrics and details are GiGPO's.
 *
 * @param prepare what GiGPO is set up with; what it throws is the estimator's
 */
export function gigpoVariant<F extends Fields>(
  name: string,
  options: OptionsOf<F>,
  table: F,
  groups: Estimator["groups"],
  prepare: (
    settings: AtMoment<Resolved<F>>,
    batch: Batch,
    context: EstimatorContext,
  ) => GigpoSetup | Promise<GigpoSetup>,
): Estimator<StepCredit> {
  settle(name, options, table, outsideRuns)
  return {
    name,
    groups,
    async estimate(batch, context) {
      const settings = settle(name, options, table, context.moment)
      return gigpo(await prepare(settings, batch, context)).estimate(batch, context)
    },
  }
}
