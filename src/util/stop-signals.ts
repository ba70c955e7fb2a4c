import { constants } from "node:os"
import { GigpoError } from "./errors.ts"

/** Signals that stop a program, and what they are called. SIGHUP comes when the terminal goes. */
export const stops = { SIGINT: "Ctrl-C", SIGTERM: "SIGTERM", SIGHUP: "SIGHUP" } as const

export type Stop = keyof typeof stops
export const stopNames = Object.keys(stops) as Stop[]

/** A signal ended the work. */
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
 * Milliseconds within which the same signal again is the same stop: npm and npx hand on to a program what the terminal has sent it
 * already.
 */
const echo = 500

/**
 * Listens for signals that stop a program, until the function that is returned is called.
 *
 * @param names - which ones.
 * @param onFirst - told of the first; returning false ignores it.
 * @param onAgain - told of a later one that asks to end at once. Not of SIGHUP: a terminal that goes may send it twice, and service
 * managers after SIGTERM.
 */
export function onStops(
  names: readonly Stop[],
  onFirst: (stopped: Stopped) => unknown,
  onAgain: (stopped: Stopped) => void,
): () => void {
  let first: Stop | undefined
  let since = 0
  const handlers = names.map((name): [Stop, () => void] => {
    const stop = () => {
      if (first === undefined) {
        if (onFirst(new Stopped(name)) === false) return
        first = name
        since = performance.now()
      } else if (name !== "SIGHUP" && (name !== first || performance.now() - since > echo)) onAgain(new Stopped(name))
    }
    return [name, stop]
  })
  for (const [name, stop] of handlers) process.on(name, stop)
  return () => {
    for (const [name, stop] of handlers) process.off(name, stop)
  }
}
