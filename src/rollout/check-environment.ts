import type { Environment } from "../environment/environment.ts"

/** Options of `checkEnvironment`. */
export interface CheckOptions {
  /** Seed of the tasks and actions. Default 1. */
  readonly seed?: number
  /** Splits that must offer tasks. Default: both. */
  readonly splits?: readonly ("train" | "test")[]
  /** Number of tasks per split. Default 3. */
  readonly tasks?: number
  /** Maximum number of steps per episode. Default 20. */
  readonly steps?: number
  /** Actions to use where observations list none. Default: the action that `parse` reads from an empty completion. */
  readonly actions?: readonly string[]
  /** Time limit of each call in milliseconds. Default 10,000. */
  readonly timeLimit?: number
}

/**
 * Tests an environment by playing episodes. The rules: equal seeds give equal tasks; equal tasks and actions give equal episodes; all members
 * of a group have the same start; rewards and metrics are finite; prompts are valid messages; `parse` accepts any string; the abort signal is
 * respected; episodes can be disposed of.
 *
 * @throws GigpoError `BAD_ENVIRONMENT` for the first rule that the environment breaks.
 */
export async function checkEnvironment<Task>(
  environment: Environment<Task>,
  options: CheckOptions = {},
): Promise<void> {
  const { checkRules } = await import("./environment-rules.ts")
  await checkRules(environment, options)
}
