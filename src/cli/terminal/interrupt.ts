import { setMaxListeners } from "node:events"
import { constants } from "node:os"
import { GigpoError } from "../../errors.ts"
import { unlessAborted } from "../../linked-abort.ts"
import { after } from "../../rollout/time-limit.ts"

/** What stops a command, and what it is called. SIGHUP comes when the terminal goes. */
const stops = { SIGINT: "Ctrl-C", SIGTERM: "SIGTERM", SIGHUP: "SIGHUP" } as const

type Stop = keyof typeof stops
const stopNames = Object.keys(stops) as Stop[]

/** A signal ended the command. */
export class Stopped extends GigpoError {
  /** By convention 128 and the signal's number. */
  readonly exitCode: number

  constructor(stop: Stop) {
    super("ABORTED", `Stopped by ${stops[stop]}.`)
    this.exitCode = 128 + constants.signals[stop]
  }
}

/** Milliseconds that a command with nothing to save has to clean up. */
const cleaning = 1200

/**
 * Runs `work` with a signal that the first Ctrl-C, SIGTERM or SIGHUP aborts; the second ends the process at once. Rejects with
 * `Stopped` where the signal ended the work.
 *
 * @param options.saves - the work has a state to save, or a folder to clear away: it is waited for. Any other is left where it is
 * if it does not end soon.
 */
export async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { saves = false }: { readonly saves?: boolean } = {},
): Promise<T> {
  const controller = new AbortController()
  const left = new AbortController()
  const { signal } = controller
  // Every episode in flight listens.
  setMaxListeners(0, signal)
  let timer: NodeJS.Timeout | undefined
  const handlers = stopNames.map((name): [Stop, () => void] => {
    const stop = () => {
      const stopped = new Stopped(name)
      if (signal.aborted) process.exit(stopped.exitCode)
      controller.abort(stopped)
      if (!saves) timer = after(cleaning, () => left.abort(stopped))
    }
    return [name, stop]
  })
  for (const [name, stop] of handlers) process.on(name, stop)
  try {
    return await unlessAborted(left.signal, () => work(signal))
  } catch (error) {
    if (GigpoError.is(error) && error.code === "ABORTED") signal.throwIfAborted()
    throw error
  } finally {
    clearTimeout(timer)
    for (const [name, stop] of handlers) process.off(name, stop)
  }
}
