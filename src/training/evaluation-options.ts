import { lowestTemperature } from "../engine/check-arguments.ts"
import { field, group, integer } from "../options/field.ts"
import type { OptionsOf } from "../options/table.ts"
import { rolloutFields } from "../rollout/options.ts"

// A separate module from the options of training, which load all estimators and losses.

export const seedField = integer(0, "Seed of all random numbers.", { min: 0 })

export const evaluationFields = {
  tasks: integer(256, "Number of held-out tasks, one episode each.", { min: 1 }),
  temperature: field<number, "Sampling temperature in evaluations. 0 is greedy decoding. The default is the paper's.">(
    0.4,
    "Sampling temperature in evaluations. 0 is greedy decoding. The default is the paper's.",
    (value) =>
      value === 0 || (Number.isFinite(value) && (value as number) >= lowestTemperature)
        ? undefined
        : `must be 0 (greedy decoding) or at least ${lowestTemperature}`,
  ),
}

/** Options of `evaluate`. The temperature next to `tasks` applies, not that of `rollout`. */
export const evaluateFields = {
  seed: seedField,
  ...evaluationFields,
  rollout: group(rolloutFields, "Sampling of episodes."),
}

/** Options of evaluations during training. */
export type EvaluationOptions = OptionsOf<typeof evaluationFields>
export type EvaluateOptions = OptionsOf<typeof evaluateFields>
