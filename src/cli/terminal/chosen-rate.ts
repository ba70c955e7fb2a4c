import type { SettledOptimizerOptions } from "../../training/optimizer.ts"
import { formatNumber } from "./format.ts"

/** What is said where a learning rate was left to the size of the model. */
export function chosenRate(
  key: string,
  { learningRate }: Pick<SettledOptimizerOptions, "learningRate">,
  { parameters }: { readonly parameters: number },
): string {
  return `Learning rate ${formatNumber(learningRate as number)}, for ${parameters.toLocaleString("en-US")} weights; ${key} sets another.`
}
