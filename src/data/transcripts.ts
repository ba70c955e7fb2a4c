import { readJsonLines } from "../environment/json-lines.ts"
import { GigpoError } from "../errors.ts"
import { checkPath } from "../options/arguments.ts"
import { ApiError } from "../server/api-error.ts"
import { readConversation } from "./conversation.ts"
import { checkTranscriptCodec, conversationRows, type TranscriptCodec } from "./conversation-rows.ts"
import type { Example, TrainingData } from "./data.ts"
import { isPair, readPair } from "./pair.ts"

/**
 * Chat transcripts, or preference pairs, from a JSON Lines file in the formats of OpenAI and Hugging Face: `{"messages": […]}`, or
 * `{"prompt": …, "chosen": …, "rejected": …}`. A line that cannot be read is refused with its number (`BAD_DATA`).
 */
export function transcripts(path: string): TrainingData {
  checkPath("The file of transcripts", path)
  return {
    name: path,
    async *examples({ tokenizer, replies, signal }) {
      checkTranscriptCodec(tokenizer)
      for await (const { number, value } of readJsonLines(path, signal)) {
        try {
          yield { place: `line ${number}`, ...(await exampleOf(tokenizer, value, replies)) }
        } catch (error) {
          if (!(error instanceof ApiError)) throw error
          throw new GigpoError("BAD_DATA", `${path}, line ${number}: ${error.message}`, { cause: error })
        }
      }
    },
  }
}

async function exampleOf(
  codec: TranscriptCodec,
  line: unknown,
  replies: "all" | "last",
): Promise<Omit<Example, "place">> {
  if (!isPair(line)) return { rows: await conversationRows(codec, readConversation(line, replies)) }
  const { chosen, rejected } = readPair(line)
  return { rows: await conversationRows(codec, chosen), rejected: await conversationRows(codec, rejected) }
}
