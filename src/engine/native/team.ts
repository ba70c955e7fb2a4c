import type { Started } from "../../native/native.ts"
import { GigpoError, type GigpoErrorCode } from "../../util/errors.ts"

/** Errors that a device causes; their messages get its name. */
const ofDevice: readonly GigpoErrorCode[] = ["DEVICE_LOST", "DEVICE_UNAVAILABLE", "OUT_OF_MEMORY", "INTERNAL"]

/**
 * Calls on all replicas of a policy at once. Once a call has changed some replicas and failed on others, their weights may differ: every
 * later call fails with the error of that call.
 */
export class Team {
  /** Name of each replica's device. */
  readonly #names: readonly string[]
  #broken: unknown

  constructor(names: readonly string[]) {
    this.#names = names
  }

  /** Starts a call on one replica. */
  one<L, T>(replicas: readonly L[], rank: number, call: (replica: L) => Started<T>): Started<T> {
    if (this.#broken !== undefined) return failed(this.#broken)
    const { promise, cancel } = call(replicas[rank]!)
    const named = promise.catch((error) => {
      throw this.#named(error, rank)
    })
    return { promise: named, cancel }
  }

  /**
   * Starts a call on all replicas and resolves to their results in order. If a device fails, the call is cancelled on the others. The error is
   * that of the first replica that was not cancelled.
   *
   * @param undo - restores one state on all replicas after a failure.
   */
  all<L, T>(
    replicas: readonly L[],
    call: (replica: L) => Started<T>,
    undo?: (replica: L) => Started<void>,
  ): Started<T[]> {
    if (this.#broken !== undefined) return failed(this.#broken)
    const started = replicas.map((replica) => begun(() => call(replica)))
    const cancel = () => {
      for (const one of started) one.cancel()
    }
    const settled = async () => {
      for (const { promise } of started) promise.catch((error) => isOfDevice(error) && cancel())
      const results = await Promise.allSettled(started.map(({ promise }) => promise))
      const error = this.#errorOf(results)
      if (error === undefined) return results.map((result) => (result as PromiseFulfilledResult<T>).value)
      if (!isSame(results)) await this.#restore(replicas, error, undo)
      throw error
    }
    return { promise: settled(), cancel }
  }

  async #restore<L>(replicas: readonly L[], error: unknown, undo: ((replica: L) => Started<void>) | undefined) {
    const undone = undo ? await Promise.allSettled(replicas.map((replica) => begun(() => undo(replica)).promise)) : []
    if (!undo || undone.some(({ status }) => status === "rejected")) this.#broken = error
  }

  #errorOf(results: readonly PromiseSettledResult<unknown>[]): unknown {
    const errors = results.flatMap((result, rank) =>
      result.status === "rejected" ? [this.#named(result.reason, rank)] : [],
    )
    return errors.find((error) => codeOf(error) !== "ABORTED") ?? errors[0]
  }

  #named(error: unknown, rank: number): unknown {
    if (!isOfDevice(error)) return error
    return new GigpoError(error.code, `${this.#names[rank]}: ${error.message}`, { cause: error })
  }
}

function isOfDevice(error: unknown): error is GigpoError {
  return GigpoError.is(error) && ofDevice.includes(error.code)
}

/** Whether a call has ended on all replicas in the same way. */
function isSame(results: readonly PromiseSettledResult<unknown>[]): boolean {
  const ends = results.map((result) => (result.status === "rejected" ? codeOf(result.reason) : undefined))
  return new Set(ends).size === 1
}

function codeOf(error: unknown): GigpoErrorCode | undefined {
  return GigpoError.is(error) ? error.code : "INTERNAL"
}

/** Starts a call. An exception, as of a disposed engine, becomes a rejection: the others have begun. */
function begun<T>(call: () => Started<T>): Started<T> {
  try {
    return call()
  } catch (error) {
    return failed(error)
  }
}

function failed(error: unknown): Started<never> {
  return { promise: Promise.reject(error), cancel() {} }
}
