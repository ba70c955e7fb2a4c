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
  readonly signal: Stop

  constructor(signal: Stop) {
    super("ABORTED", `Stopped by ${stops[signal]}.`)
    this.signal = signal
    this.exitCode = 128 + constants.signals[signal]
  }
}

/**
 * Ends the process. Where the terminal of a process has gone, Node's own way out fails an assertion, as it cannot reset it: there
 * the signal itself does it, which a shell reports as the same exit code.
 */
export function leave({ signal, exitCode }: Stopped): void {
  const onTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY)
  if (signal === "SIGHUP" && onTerminal) process.removeAllListeners(signal).kill(process.pid, signal)
  else process.exit(exitCode)
}

/**
 * Milliseconds within which the same signal again is the same stop: npm and npx hand on to a command what the terminal has sent it
 * already.
 */
const echo = 500

/** Milliseconds that a command with nothing to save has to clean up. */
const cleaning = 1200

/**
 * Runs `work` with a signal that the first Ctrl-C, SIGTERM or SIGHUP aborts; a second one ends the process at once, but for SIGHUP:
 * a terminal that goes may send it twice, and service managers after SIGTERM. Rejects with `Stopped` where the signal ended the work.
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
  let first: Stop | undefined
  let since = 0
  const handlers = stopNames.map((name): [Stop, () => void] => {
    const stop = () => {
      const again = signal.aborted && (name !== first || performance.now() - since > echo)
      if (again && name !== "SIGHUP") leave(new Stopped(name))
      if (signal.aborted) return
      const stopped = new Stopped(name)
      first = name
      since = performance.now()
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
