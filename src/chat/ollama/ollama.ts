import type { ApiError } from "../api-error.ts"
import type { Dialect } from "../dialect.ts"
import { readChat, readGenerate } from "./read-request.ts"
import { ChatLines, GenerateLines } from "./write-lines.ts"

const common: Pick<Dialect, "streamType" | "error"> = {
  streamType: "application/x-ndjson",
  error: ({ message }: ApiError) => ({ error: message }),
}

/** POST /api/chat of Ollama. */
export const ollamaChat: Dialect = {
  ...common,
  *read(body, textOf) {
    const call = yield* readChat(body)
    return { call, answer: new ChatLines(call, textOf) }
  },
}

/** POST /api/generate of Ollama. */
export const ollamaGenerate: Dialect = {
  ...common,
  *read(body, textOf) {
    const call = yield* readGenerate(body)
    return { call, answer: new GenerateLines(call, textOf) }
  },
}
