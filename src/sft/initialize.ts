import type { DemonstrationSetup } from "../training/player.ts"
import type { StageProgress } from "../training/progress.ts"
import type { InitializeModelOptions } from "./initialize-options.ts"

export type { InitializeModelOptions } from "./initialize-options.ts"

/** Arguments of `initializeModel`. */
export interface InitializeModelSetup<Task = unknown> extends DemonstrationSetup<Task> {
  /** Folder of the model. Must not exist or be empty, unless `overwrite` is true. */
  readonly directory: string
  /** Shape of the model and seed. */
  readonly options?: InitializeModelOptions
  /** Whether to replace a model that gigpo wrote there. Other files are kept. Default false. */
  readonly overwrite?: boolean
  /** Signal that aborts the work. An abort leaves the folder unchanged. */
  readonly signal?: AbortSignal | undefined
  /** Called with the number of episodes that the expert has played. */
  readonly onExpert?: ((progress: StageProgress) => void) | undefined
  /** Called with a warning about failed episodes, which are left out. Default: a warning of Node.js. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** Result of `initializeModel`. */
export interface InitializeModelResult {
  /** Number of weights of the model. */
  readonly parameters: number
  /** Number of tokens of the tokenizer. */
  readonly vocabularySize: number
  /** Length of the longest completion of the expert in tokens, with the end token. */
  readonly longestCompletion: number
}

/**
 * Creates a small model with random weights and a byte-level tokenizer that is trained on texts of an environment or agent. The model is
 * written in Hugging Face layout. Fine-tune it with `sft` before reinforcement learning.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option, `BAD_ENVIRONMENT` for an environment without an expert, and errors of the file
 * system.
 */
export async function initializeModel<Task>(setup: InitializeModelSetup<Task>): Promise<InitializeModelResult> {
  const { initializeModel } = await import("./initialize-model.ts")
  return await initializeModel(setup)
}
