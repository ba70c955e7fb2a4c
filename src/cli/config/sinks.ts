import type { RunObserver } from "../../training/observers.ts"
import { mlflow } from "../../view/sinks/mlflow.ts"
import { tensorBoard } from "../../view/sinks/tensorboard.ts"
import type { Config } from "./config.ts"

/** Observers that send metrics to the configured destinations. */
export function configuredSinks(config: Config): readonly RunObserver[] {
  return [...(config.tensorboard ? [tensorBoard()] : []), ...(config.mlflow ? [mlflow(config.mlflow)] : [])]
}
