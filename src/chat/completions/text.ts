import type { Dialect } from "../dialect.ts"
import { readText } from "./read-text.ts"
import { TextAnswer } from "./write-text.ts"

/** POST /v1/completions, which continues a text without a chat template. */
export const text: Dialect = {
  *read(body, textOf) {
    const call = yield* readText(body)
    return { call, answer: new TextAnswer(call, textOf) }
  },
}
