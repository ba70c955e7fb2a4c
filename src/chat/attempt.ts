import type { Turn } from "./call-order.ts"
import type { SaidReply } from "./reply-generator.ts"

// Clients send a request again, byte for byte, when the connection was lost before they had its answer, and say nothing about it.
// To an episode that is one step and not two. The server decides which requests are such: it knows what it could not hand over, while
// the client cannot know what was sampled for it. An answer is handed over once its reader has taken its last byte and asked for more
// (the server behind a socket asks when the bytes are with the operating system). Where a request ends otherwise its attempt is lost,
// and the next request with the same path, key and bytes goes on with it: it gets the replies that were recorded, and those that were
// cut off are sampled with the same random numbers, for the same places in the episode. Requests that are equal on purpose have an
// attempt each, since nothing was lost when the second came; all of them count. Bytes that the system took and the network lost look
// delivered: then a retry is a step of its own.

/** When an attempt was first made. */
export interface Came {
  /** Undefined where no order is kept. */
  readonly turn: Turn | undefined
  /** How many calls of the same history there were before. */
  readonly again: number
}

/** One step of a client, with all requests that it took. */
export class Attempt {
  readonly #replies = new Map<number, Promise<SaidReply>>()
  #came: Came | undefined
  #places: readonly number[] | undefined
  /** Replies that are recorded. */
  said = 0

  /** Whether it has its number among equal calls, from which its random numbers are drawn; what was refused before has none. */
  get begun(): boolean {
    return this.#came !== undefined
  }

  came(first: () => Came): Came {
    this.#came ??= first()
    return this.#came
  }

  /** [replies] The observer's, taken once. */
  places(take: () => readonly number[]): readonly number[] {
    this.#places ??= take()
    return this.#places
  }

  /** The reply of this number: sampled, unless an earlier request has it. */
  async reply(number: number, sample: () => Promise<SaidReply>): Promise<{ reply: SaidReply; earlier: boolean }> {
    const earlier = await this.#replies.get(number)?.catch(() => undefined)
    if (earlier) return { reply: earlier, earlier: true }
    const sampling = sample()
    this.#replies.set(number, sampling)
    const reply = await sampling
    this.said++
    return { reply, earlier: false }
  }
}

/** The attempts of one episode that are not over. */
export class Attempts {
  readonly #lost = new Map<string, Attempt[]>()

  /** @param request the same for requests with the same bytes */
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

  /** Replies that were recorded and that nobody got. */
  get undelivered(): number {
    return [...this.#lost.values()].flat().reduce((sum, { said }) => sum + said, 0)
  }
}
