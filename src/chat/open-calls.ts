import { badField } from "./api-error.ts"

/** Calls of tools that wait for their results: each has one, and each result belongs to one. */
export class OpenCalls {
  readonly #waiting = new Map<string, string>()
  #others = false

  /** @param field where the call's id stands */
  call(id: string, field: string): void {
    if (this.#waiting.has(id)) throw badField(field, "is the id of an earlier call, too")
    this.#waiting.set(id, field)
  }

  /** From now on there may be calls that only their results tell of. */
  referred(): void {
    this.#others = true
  }

  /** @param field where the result says to which call it belongs */
  answer(id: string, field: string): void {
    if (!this.#waiting.delete(id) && !this.#others)
      throw badField(
        field,
        `is ${JSON.stringify(id.slice(0, 100))}, and no call before it waits for the result of that`,
      )
  }

  /** Refuses calls that are still waiting. */
  done(): void {
    for (const field of this.#waiting.values())
      throw badField(field, "has no result: send a tool's message (or a function_call_output) for each call")
  }
}
