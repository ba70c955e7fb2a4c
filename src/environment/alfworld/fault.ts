import { GigpoError } from "../../util/errors.ts"

/** Error in the text of a game. `guard` converts it to a `BAD_DATA` error with the source of the game. */
class Fault extends Error {}

export function fault(reason: string): never {
  throw new Fault(reason)
}

/** Maximum number of facts visited and characters written by one call; real games need up to 6,500. */
const maxWork = 500_000
let workLeft = maxWork

/** Counts work, so that a malicious game causes a fault instead of an endless computation. */
export function work(amount: number): void {
  workLeft -= amount
  if (workLeft < 0) fault("its rules take too much work to evaluate")
}

/** Runs `act` with a bounded amount of work; a fault in it becomes a `BAD_DATA` that names the source. */
export function guard<T>(source: string, act: () => T): T {
  workLeft = maxWork
  try {
    return act()
  } catch (error) {
    // A RangeError is a stack overflow or a string that is too long.
    if (!(error instanceof Fault || error instanceof RangeError)) throw error
    throw new GigpoError("BAD_DATA", `${source}: ${error.message}; fetch or generate the game again.`, { cause: error })
  }
}
