import type { Dialect } from "../dialect.ts"
import { readChat } from "./read-chat.ts"
import { ChatAnswer } from "./write-chat.ts"

/** POST /v1/chat/completions */
export const chat: Dialect = {
  *read(body, textOf) {
    const call = yield* readChat(body)
    return { call, answer: new ChatAnswer(call, textOf) }
  },
}
