import { GigpoError } from "../util/errors.ts"

/**
 * Reports of long work, such as `train`. Iterate with `for await` to receive each report when it is available, or `await` all reports. The
 * work starts with the first of either and runs once: a second consumer gets `BAD_ARGUMENT`.
 */
export class ReportStream<T> implements AsyncIterable<T>, PromiseLike<readonly T[]> {
  readonly #work: () => AsyncGenerator<T, void, undefined>
  #taken = false
  #all: Promise<readonly T[]> | undefined

  constructor(work: () => AsyncGenerator<T, void, undefined>) {
    this.#work = work
  }

  [Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    if (this.#taken)
      throw new GigpoError(
        "BAD_ARGUMENT",
        "These reports are already awaited or iterated; call the function again to repeat the work.",
      )
    this.#taken = true
    return this.#work()
  }

  // biome-ignore lint/suspicious/noThenProperty: the class is meant to be awaited
  then<A = readonly T[], B = never>(
    fulfilled?: ((reports: readonly T[]) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#all ??= collect(() => this[Symbol.asyncIterator]())
    return this.#all.then(fulfilled, rejected)
  }
}

async function collect<T>(open: () => AsyncIterable<T>): Promise<readonly T[]> {
  const reports: T[] = []
  for await (const report of open()) reports.push(report)
  return reports
}
