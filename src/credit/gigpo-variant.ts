import type { ScheduledValues } from "../options/schedule.ts"
import type { OptionFields, OptionsOf, ResolvedOf } from "../options/table.ts"
import type { Batch, Estimator, EstimatorContext, StepCredit } from "./estimator.ts"
import { gigpo } from "./gigpo.ts"
import { type GigpoOptions, outsideRuns, settle } from "./options.ts"
import type { GigpoParts } from "./parts.ts"

/** Options and parts of GiGPO, as `gigpo` accepts them. */
export type GigpoSetup = GigpoOptions & { readonly [name in keyof GigpoParts]?: GigpoParts[name] | undefined }

/**
 * Returns an estimator that is GiGPO with other parts. `prepare` derives the options and parts of GiGPO from the variant's options for
 * every batch. Metrics and details are those of GiGPO.
 *
 * @param prepare returns the options and parts of GiGPO; errors are reported as errors of the variant
 */
export function gigpoVariant<F extends OptionFields>(
  name: string,
  options: OptionsOf<F>,
  table: F,
  groups: Estimator["groups"],
  prepare: (
    settings: ScheduledValues<ResolvedOf<F>>,
    batch: Batch,
    context: EstimatorContext,
  ) => GigpoSetup | Promise<GigpoSetup>,
): Estimator<StepCredit> {
  settle(name, options, table, outsideRuns)
  return {
    name,
    groups,
    async estimate(batch, context) {
      const settings = settle(name, options, table, context.progress)
      return gigpo(await prepare(settings, batch, context)).estimate(batch, context)
    },
  }
}
