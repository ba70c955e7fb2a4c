import { gigpoAdvantages } from "../credit/gigpo.ts"
import { checkAdamW, checkTemperature, checkWhole } from "../engine/check-arguments.ts"
import { GigpoError } from "../errors.ts"
import { resolveLossOptions, trainingAggregations } from "../loss/loss-options.ts"
import { optimizerDefaults } from "./defaults.ts"
import type { OptimizerOptions, TrainOptions } from "./options.ts"

/** Refuses what would fail only after the first rollout, or never; `rollout` and `evaluate` check the rest as they start. */
export function checkTrainOptions(options: TrainOptions): void {
  for (const name of ["iterations", "groups", "groupSize", "batchRows", "epochs"] as const) checkCount(options, name)
  for (const name of ["checkpointEvery", "keepCheckpoints"] as const) checkCount(options, name)
  checkTemperature(options.rollout?.temperature) // 0 would do to sample, but has no gradient
  const { name = "gigpo", ...estimator } = options.estimator ?? {}
  checkChoice("estimator.name", name, ["gigpo", "grpo"])
  gigpoAdvantages([], estimator)
  resolveLossOptions(options.loss ?? {}, trainingAggregations)
  checkOptimizer(options.optimizer)
}

export function checkOptimizer(options: OptimizerOptions = {}): void {
  const { schedule, warmup, ...adamw } = { ...optimizerDefaults, ...options }
  checkChoice("optimizer.schedule", schedule, ["constant", "linear", "cosine"])
  if (!(Number.isSafeInteger(warmup) && warmup >= 0))
    throw new GigpoError("BAD_ARGUMENT", `optimizer.warmup is ${warmup}; it must be a whole number of at least 0.`)
  checkAdamW({ ...adamw, epsilon: 1e-8 })
}

function checkCount<Name extends string>(options: { readonly [name in Name]?: number }, name: Name): void {
  const value = options[name]
  if (value !== undefined) checkWhole(value, name)
}

function checkChoice(name: string, value: string, choices: readonly string[]): void {
  if (choices.includes(value)) return
  const listed = choices.map((choice) => `"${choice}"`).join(", ")
  throw new GigpoError("BAD_ARGUMENT", `${name} is ${JSON.stringify(value)}; give one of ${listed}.`)
}
