import { badField } from "./api-error.ts"

/** Tool calls without a result. Each call has one result, and each result belongs to one call. */
export class OpenCalls {
  readonly #waiting = new Map<string, string>()
  #others = false

  /** @param field - field of the call's id */
  call(id: string, field: string): void {
    if (this.#waiting.has(id)) throw badField(field, "is the id of an earlier call")
    this.#waiting.set(id, field)
  }

  /** Allows results of calls that are not in the request, from now on. */
  referred(): void {
    this.#others = true
  }

  /** @param field - field in which the result names its call */
  answer(id: string, field: string): void {
    if (!this.#waiting.delete(id) && !this.#others)
      throw badField(field, `is ${JSON.stringify(id.slice(0, 100))}, which is not the id of an open call`)
  }

  /** Throws if a call has no result. */
  done(): void {
    for (const field of this.#waiting.values())
      throw badField(
        field,
        "has no result: send a tool message (or a function_call_output, or a tool_result) for each call",
      )
  }
}
