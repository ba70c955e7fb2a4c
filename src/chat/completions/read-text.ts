import { mostTopTokens } from "../../engine/check-request.ts"
import type { Pieces } from "../../util/pace.ts"
import { badField } from "../api-error.ts"
import { FieldReader, isText } from "../fields.ts"
import type { ChoicesCall } from "./choices.ts"
import { neutral, readLength, readStop, readStreamOptions, unheeded } from "./read-chat.ts"
import { readFormat } from "./read-format.ts"

// POST /v1/completions: https://platform.openai.com/docs/api-reference/completions/create

export function* readText(body: unknown): Pieces<ChoicesCall> {
  const read = new FieldReader(body)
  const stream = read.boolean("stream") ?? false
  const streamOptions = read.any("stream_options")
  const topLogProbs = read.whole("logprobs", 0, mostTopTokens)
  const call: ChoicesCall = {
    model: read.required("model"),
    messages: [{ role: "user", content: readPrompt(read.any("prompt")) }],
    ...{ raw: true, tools: [], toolChoice: "none", parallel: false },
    format: yield* readFormat(read.any("response_format"), "response_format", "json_schema"),
    maxTokens: readLength(read),
    stop: readStop(read.any("stop")),
    count: read.whole("n", 1, 128) ?? 1,
    seed: read.whole("seed", -(2 ** 53), 2 ** 53),
    temperature: read.number("temperature", 0, 2),
    logProbs: topLogProbs !== undefined,
    topLogProbs: topLogProbs ?? 0,
    stream,
    usageInStream: readStreamOptions(streamOptions, stream),
    tokenIds: read.boolean("return_token_ids") ?? false,
  }
  read.neutral({ ...neutral, echo: [false], suffix: [""], best_of: [1, call.count] })
  read.ignore(...unheeded)
  read.done()
  return call
}

/** A text, alone or in a list. */
function readPrompt(value: unknown): string {
  const prompt: unknown = Array.isArray(value) && value.length === 1 ? value[0] : value
  if (isText(prompt, "prompt")) return prompt
  throw badField("prompt", "must be one text: send several prompts as requests of their own, and token ids as text")
}
