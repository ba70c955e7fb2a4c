import { isPromise } from "node:util/types"

/**
 * Returns a result unchanged, and handles rejections of promises in it. Promises in place of values (an async prompt, a reward without await) are
 * rejected by the checks of the result; their later rejection must not end the process.
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
