import { setMaxListeners } from "node:events"
import { reason } from "../../environment/contract.ts"
import { GigpoError } from "../../util/errors.ts"
import { linkAbort } from "../../util/linked-abort.ts"
import { visible } from "../../util/visible.ts"
import { failed } from "../fail.ts"
import { activity } from "./activity.ts"

/**
 * Runs `work` in which an environment plays, and keeps what it throws where nobody can catch it from ending the process. A promise
 * that nobody awaited and that rejects costs nothing: the first is told, the others are counted. An error from a timer or another
 * callback may have left anything behind: it aborts the signal that `work` is given, so that the state is saved, and is its reason.
 *
 * @param name - the environment's.
 * @param signal - aborts the work, too.
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
      `${name}: a promise that nobody awaited was rejected: ${reason(error)} The work goes on; the environment should await it.`,
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
      `${visible(name)}: the environment ended the process; what came after the last checkpoint is lost.\n`,
    )
    process.exitCode = failed // a script must not take it for done
  }
  process.on("exit", exit)
  try {
    return await activity.during(`episodes of ${name}`, () => work(controller.signal))
  } finally {
    process.off("unhandledRejection", stray).off("exit", exit)
    // The next timer may throw while the command ends, which has been told already.
    if (!threw) process.off("uncaughtException", thrown)
    unlink()
    if (rejected > 1) say(`${name}: ${rejected} promises that nobody awaited were rejected.`)
  }
}

/** What is not the package's own is taken to be the environment's: nothing else of somebody's runs beside it. */
function thrownError(name: string, error: unknown): GigpoError {
  if (GigpoError.is(error)) return error
  return new GigpoError(
    "BAD_ENVIRONMENT",
    `${name}: an error was thrown in a timer or another callback, where only the environment can catch it: ${reason(error)}`,
    { cause: error },
  )
}
