import { constants } from "node:os"
import { GigpoError } from "./errors.ts"

/** Signals that stop a program, with their names in messages. SIGHUP is sent when the terminal is closed. */
export const stops = { SIGINT: "Ctrl-C", SIGTERM: "SIGTERM", SIGHUP: "SIGHUP" } as const

export type Stop = keyof typeof stops
export const stopNames = Object.keys(stops) as Stop[]

/** Error of work that a signal ended. */
export class Stopped extends GigpoError {
  /** 128 plus the number of the signal, by convention. */
  readonly exitCode: number
  readonly signal: Stop

  constructor(signal: Stop) {
    super("ABORTED", `Stopped by ${stops[signal]}.`)
    this.signal = signal
    this.exitCode = 128 + constants.signals[signal]
  }
}

/**
 * Milliseconds within which a repeated signal counts as the same: npm and npx forward a signal that the terminal has
 * already sent to the program.
 */
const echo = 500

/**
 * Listens for signals that stop a program, until the returned function is called.
 *
 * @param names - signals to listen for.
 * @param onFirst - called for the first signal; returning false ignores it.
 * @param onAgain - called for a later signal, which asks to end at once. Not called for SIGHUP, which may arrive twice
 * from a closing terminal, or after SIGTERM from a service manager.
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
