import type { Dialect } from "../dialect.ts"
import { anthropicError } from "./error.ts"
import { readRequest } from "./read-request.ts"
import { MessageAnswer } from "./write-message.ts"

/** POST /v1/messages, the Messages API of Anthropic. */
export const anthropic: Dialect = {
  *read(body) {
    const call = yield* readRequest(body)
    return { call, answer: new MessageAnswer(call) }
  },
  error: anthropicError,
}
