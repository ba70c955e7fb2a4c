import type { RunObserver } from "../../training/observers.ts"
import { mlflow } from "../../view/sinks/mlflow.ts"
import { tensorBoard } from "../../view/sinks/tensorboard.ts"
import type { Config } from "./config.ts"

/** Where the numbers of the configured run go. */
export function configuredSinks(config: Config): readonly RunObserver[] {
  return [...(config.tensorboard ? [tensorBoard()] : []), ...(config.mlflow ? [mlflow(config.mlflow)] : [])]
}
