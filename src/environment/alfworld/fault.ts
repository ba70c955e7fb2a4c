import { GigpoError } from "../../util/errors.ts"

/** What is wrong with the text of a game; whoever knows where the game came from makes it a `BAD_DATA`. */
class Fault extends Error {}

export function fault(reason: string): never {
  throw new Fault(reason)
}

/** Facts looked at and characters written by one call; real games take up to 6,500. */
const maxWork = 500_000
let workLeft = maxWork

/** Counts work, so that a game made to blow up ends in a fault and not in a standstill. */
export function work(amount: number): void {
  workLeft -= amount
  if (workLeft < 0) fault("its rules take too much work to follow")
}

/** Runs `act` with a bounded amount of work; a fault in it becomes a `BAD_DATA` that names the source. */
export function guard<T>(source: string, act: () => T): T {
  workLeft = maxWork
  try {
    return act()
  } catch (error) {
    // A RangeError is a stack or a text grown out of bounds.
    if (!(error instanceof Fault || error instanceof RangeError)) throw error
    throw new GigpoError("BAD_DATA", `${source}: ${error.message}; fetch or generate the game again.`, { cause: error })
  }
}
