import { lowestTemperature } from "../engine/check-arguments.ts"
import { field, group, integer } from "../options/field.ts"
import type { OptionsOf } from "../options/table.ts"
import { rolloutFields } from "../rollout/options.ts"

// Apart from the options of training, which load every estimator and loss.

export const seedField = integer(0, "The root of every random number.", { min: 0 })

export const evaluationFields = {
  tasks: integer(256, "Held-out tasks, one episode each.", { min: 1 }),
  temperature: field<number, "The default is the paper's; 0 takes the most likely token.">(
    0.4,
    "The default is the paper's; 0 takes the most likely token.",
    (value) =>
      value === 0 || (Number.isFinite(value) && (value as number) >= lowestTemperature)
        ? undefined
        : `must be 0, for the most likely token, or at least ${lowestTemperature}`,
  ),
}

/** Of `evaluate`, where the temperature beside the tasks counts, not the rollout's. */
export const evaluateFields = {
  seed: seedField,
  ...evaluationFields,
  rollout: group(rolloutFields, "How episodes are sampled."),
}

/** Options of evaluations during training. */
export type EvaluationOptions = OptionsOf<typeof evaluationFields>
export type EvaluateOptions = OptionsOf<typeof evaluateFields>
