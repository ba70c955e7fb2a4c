import { setMaxListeners } from "node:events"
import { reason } from "../../environment/contract.ts"
import { GigpoError } from "../../util/errors.ts"
import { linkAbort } from "../../util/linked-abort.ts"
import { visible } from "../../util/visible.ts"
import { failed } from "../fail.ts"
import { activity } from "./activity.ts"

/**
 * Runs `work` with an environment, and contains errors that escape its promises. Unhandled rejections do no harm: the
 * first is reported, the others are counted. An uncaught error from a timer or another callback may leave inconsistent
 * state: it aborts the signal of `work`, so that the state is saved, and becomes the reason.
 *
 * @param name - name of the environment.
 * @param signal - also aborts the work.
 */
export async function containingStrays<T>(
  name: string,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  say: (text: string) => void,
): Promise<T> {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  const unlink = linkAbort(signal, controller)
  let rejected = 0
  const stray = (error: unknown) => {
    if (++rejected > 1) return
    say(
      `${name}: an unhandled promise was rejected: ${reason(error)} The run continues; the environment should await this promise.`,
    )
  }
  let threw = false
  const thrown = (error: unknown) => {
    threw = true
    controller.abort(thrownError(name, error))
  }
  process.on("unhandledRejection", stray).on("uncaughtException", thrown)
  const exit = (code: number) => {
    if (code !== 0) return
    process.stderr.write(
      `${visible(name)}: the environment ended the process; progress since the last checkpoint is lost.\n`,
    )
    process.exitCode = failed // so that a script does not treat it as success
  }
  process.on("exit", exit)
  try {
    return await activity.during(`episodes of ${name}`, () => work(controller.signal))
  } finally {
    process.off("unhandledRejection", stray).off("exit", exit)
    // Another timer may throw while the command ends; the first error has been reported.
    if (!threw) process.off("uncaughtException", thrown)
    unlink()
    if (rejected > 1) say(`${name}: ${rejected} unhandled promises were rejected.`)
  }
}

/**
 * Error for an uncaught exception. Errors other than the package's own are attributed to the environment, the only
 * foreign code.
 */
function thrownError(name: string, error: unknown): GigpoError {
  if (GigpoError.is(error)) return error
  return new GigpoError(
    "BAD_ENVIRONMENT",
    `${name}: an error was thrown in a timer or another callback, where only the environment can catch it: ${reason(error)}`,
    { cause: error },
  )
}
