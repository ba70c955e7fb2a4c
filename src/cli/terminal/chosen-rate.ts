import type { SettledOptimizerOptions } from "../../training/optimizer.ts"
import { formatNumber } from "./format.ts"

/** Message about a learning rate that was chosen by the size of the model. */
export function chosenRate(
  key: string,
  { learningRate }: Pick<SettledOptimizerOptions, "learningRate">,
  { parameters }: { readonly parameters: number },
): string {
  return `Learning rate ${formatNumber(learningRate as number)}, chosen for ${parameters.toLocaleString("en-US")} weights; ${key} overrides it.`
}
