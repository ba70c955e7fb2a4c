import { isPromise } from "node:util/types"

/**
 * The same answer. A promise where none belongs (a reward that nobody awaited, a prompt that is async) is refused by whoever checks
 * the answer; when it rejects later, nobody listens, and that must not end the process.
 */
export function withoutStrays<T>(answer: T): T {
  try {
    if (isPromise(answer)) hush(answer)
    else if (typeof answer === "object" && answer !== null)
      for (const value of Object.values(answer)) if (isPromise(value)) hush(value)
  } catch {} // what cannot be looked at cannot be read either, which the check will find
  return answer
}

function hush(promise: Promise<unknown>): void {
  promise.catch(() => {})
}
