import { GigpoError } from "../util/errors.ts"

/**
 * Long work that reports as it goes. Iterate it to see each report as it comes, or await it for all of them. It starts with the
 * first of either, once: a second consumer is refused.
 */
export class Reports<T> implements AsyncIterable<T>, PromiseLike<readonly T[]> {
  readonly #work: () => AsyncGenerator<T, void, undefined>
  #taken = false
  #all: Promise<readonly T[]> | undefined

  constructor(work: () => AsyncGenerator<T, void, undefined>) {
    this.#work = work
  }

  [Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    if (this.#taken)
      throw new GigpoError("BAD_ARGUMENT", "This is awaited or iterated already; call it again for more.")
    this.#taken = true
    return this.#work()
  }

  // biome-ignore lint/suspicious/noThenProperty: to be awaited is what it is for
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
