import type { Dialect } from "../dialect.ts"
import { readResponses } from "./read-responses.ts"
import { ResponsesAnswer } from "./write-responses.ts"

/** POST /v1/responses */
export const responses: Dialect = {
  *read(body, textOf) {
    const call = yield* readResponses(body)
    return { call, answer: new ResponsesAnswer(call, textOf) }
  },
}
