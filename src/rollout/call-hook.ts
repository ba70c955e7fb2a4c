import { reason } from "../environment/contract.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import { GigpoError } from "../util/errors.ts"
import { unlessAborted } from "../util/linked-abort.ts"
import type { Random } from "../util/random.ts"
import type { HookContext } from "./hooks.ts"

/** Arguments of hook calls. */
export interface HookCaller extends Partial<Pick<HookContext, "environment" | "policy" | "tokenizer">> {
  /** Progress of the run. Default: the first iteration of a run with one iteration. */
  readonly progress?: TrainingProgress | undefined
  readonly random: Random
  /** Signal that aborts the work. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Calls a hook with random numbers keyed by `key`, and checks the result. Errors are reported with the name of the hook. An abort of the
 * signal ends the wait.
 */
export async function callHook<Answer, Checked = Answer>(
  name: string,
  { progress = { iteration: 0, iterations: 1 }, random, signal = new AbortController().signal, ...caller }: HookCaller,
  key: readonly (number | string)[],
  call: (context: HookContext) => Answer | Promise<Answer>,
  check: (answer: Answer) => Checked,
): Promise<Checked> {
  const { environment, policy, tokenizer } = caller
  let answer: Answer
  try {
    const context = { progress, random: random.derive(...key), signal, environment, policy, tokenizer }
    answer = await unlessAborted(signal, () => call(context))
  } catch (error) {
    signal.throwIfAborted()
    if (GigpoError.is(error)) throw error
    throw new GigpoError("BAD_ARGUMENT", `${name} threw: ${reason(error)}`, { cause: error })
  }
  return check(answer)
}
