import type { Trainable } from "../../engine/engine.ts"
import type { SettledOptimizerOptions } from "../../training/optimizer.ts"
import { formatNumber } from "./format.ts"

/** Message about a default learning rate, which depends on the size of the model if the engine reports it. */
export function chosenRate(
  key: string,
  { learningRate }: Pick<SettledOptimizerOptions, "learningRate">,
  { parameters, lora }: Pick<Trainable, "parameters" | "lora">,
): string {
  const size = parameters === undefined ? "a model" : `${parameters.toLocaleString("en-US")} weights`
  return `Learning rate ${formatNumber(learningRate as number)}, chosen for ${lora ? "an adapter of " : ""}${size}; ${key} overrides it.`
}
