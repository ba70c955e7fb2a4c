import type { SettledOptimizerOptions } from "../../training/optimizer.ts"
import { formatNumber } from "./format.ts"

/** Message about a learning rate that was chosen by the size of the model. */
export function chosenRate(
  key: string,
  { learningRate }: Pick<SettledOptimizerOptions, "learningRate">,
  { parameters, lora }: { readonly parameters: number; readonly lora?: object | undefined },
): string {
  return `Learning rate ${formatNumber(learningRate as number)}, chosen for ${lora ? "an adapter of " : ""}${parameters.toLocaleString("en-US")} weights; ${key} overrides it.`
}
