import type { Turn } from "./call-order.ts"
import type { GeneratedCompletion } from "./completion-generator.ts"

// Clients repeat a request byte for byte when the connection was lost before the response, without marking the
// repetition. For an episode both are one step. The server detects repetitions: it knows which responses could not be
// delivered, while the client cannot know what was sampled. A response is delivered once its reader has taken the last
// byte and asked for more (behind a socket: once the bytes are with the operating system). Otherwise the attempt is
// lost, and the next request with the same path, key and bytes continues it: recorded completions are sent again, and
// interrupted ones are sampled with the same random numbers for the same places in the episode. Intentionally equal
// requests have separate attempts, since nothing was lost when the second one arrived; all of them count. Bytes that the
// operating system accepted and the network lost look delivered; a retry is then a new step.

/** First arrival of an attempt. */
export interface Came {
  /** Undefined if no order is recorded. */
  readonly turn: Turn | undefined
  /** Number of earlier calls with the same history. */
  readonly again: number
}

/** Step of a client, with all requests that repeat it. */
export class Attempt {
  readonly #completions = new Map<number, Promise<GeneratedCompletion>>()
  #came: Came | undefined
  #places: readonly number[] | undefined
  /** Number of recorded completions. */
  sentCompletions = 0

  /**
   * Whether the attempt has a number among equal calls, from which random numbers are derived. Rejected requests have
   * none.
   */
  get begun(): boolean {
    return this.#came !== undefined
  }

  came(first: () => Came): Came {
    this.#came ??= first()
    return this.#came
  }

  /** [completions] Places reserved with the observer, once per attempt. */
  places(take: () => readonly number[]): readonly number[] {
    this.#places ??= take()
    return this.#places
  }

  /** Completion of this number: sampled, unless an earlier request already has it. */
  async complete(
    number: number,
    sample: () => Promise<GeneratedCompletion>,
  ): Promise<{ completion: GeneratedCompletion; earlier: boolean }> {
    const earlier = await this.#completions.get(number)?.catch(() => undefined)
    if (earlier) return { completion: earlier, earlier: true }
    const sampling = sample()
    this.#completions.set(number, sampling)
    const completion = await sampling
    this.sentCompletions++
    return { completion, earlier: false }
  }
}

/** Undelivered attempts of one episode. */
export class Attempts {
  readonly #lost = new Map<string, Attempt[]>()

  /** @param request - equal for requests with the same bytes */
  take(request: string): Attempt {
    const lost = this.#lost.get(request)
    const attempt = lost?.shift() ?? new Attempt()
    if (lost?.length === 0) this.#lost.delete(request)
    return attempt
  }

  lose(request: string, attempt: Attempt): void {
    if (!attempt.begun) return
    this.#lost.set(request, [...(this.#lost.get(request) ?? []), attempt])
  }

  /** Number of recorded completions that were not delivered. */
  get undelivered(): number {
    return [...this.#lost.values()].flat().reduce((sum, { sentCompletions }) => sum + sentCompletions, 0)
  }
}
