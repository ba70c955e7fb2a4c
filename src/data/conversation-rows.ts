import { badField } from "../chat/api-error.ts"
import { forTemplate, refusedByTemplate, toolVariables, variablesFor } from "../chat/prompt.ts"
import { toolFormat } from "../chat/tools/format.ts"
import { splitReply, upToEnd } from "../chat/written-reply.ts"
import type { Sequence } from "../engine/rows.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { type ChatTemplates, ChatWriter } from "../tokenizer/chat-writer.ts"
import { NotRendered } from "../tokenizer/not-rendered.ts"
import type { ChatMessage, Tokenizer } from "../tokenizer/tokenizer.ts"
import { GigpoError } from "../util/errors.ts"
import type { Conversation } from "./conversation.ts"
import { GrowingRows } from "./growing-rows.ts"

/** A tokenizer, as far as transcripts need it. */
export type TranscriptCodec = ChatCodec & ChatTemplates & Pick<Tokenizer, "chatTemplate">

/** @throws GigpoError `BAD_ARGUMENT` where there is no chat template to write transcripts by */
export function checkTranscriptCodec(codec: ChatCodec): asserts codec is TranscriptCodec {
  const { renderChat, chatTemplate } = codec as Partial<TranscriptCodec>
  if (typeof renderChat === "function" && chatTemplate !== undefined) return
  throw new GigpoError(
    "BAD_ARGUMENT",
    "Transcripts are written by the model's chat template, and this tokenizer has none: give a Tokenizer whose folder has a chat_template.jinja.",
  )
}

/**
 * The replies of a transcript as rows. Each is what the chat template writes behind the prompt that the model would have been given at
 * that turn, up to the token that ends its turn: what is learned is what will be asked for. Prompts that go on from each other are one row.
 */
export async function conversationRows(
  codec: TranscriptCodec,
  { messages, weights, tools, variables }: Conversation,
): Promise<Sequence[]> {
  const writer = await ChatWriter.of(codec, messages.map(forTemplate), {
    ...variablesFor(codec, variables),
    ...toolVariables(tools),
  })
  const rows = new GrowingRows(writer.encode)
  const render = async (end: number, addGenerationPrompt: boolean): Promise<string> =>
    await writer.write({ end, addGenerationPrompt }).catch((error: unknown) => {
      throw refusedByTemplate(error)
    })
  const format = toolFormat(codec.toolTemplate ?? codec.chatTemplate)
  for (const [index, weight] of weights.entries()) {
    if (weight === 0) continue
    if (index === 0)
      throw badField("messages[0]", 'is a reply to nothing: begin with a user\'s, or give it "weight": 0')
    const [asked, whole] = [await render(index, true), await render(index + 1, false)]
    const { reasoning_content: reasoning = "" } = writer.messages[index]!
    const written = splitReply(asked, whole, format.opening(asked), reasoning)
    if (!written)
      throw badField(
        `messages[${index}]`,
        "is not written by the chat template where it asks for a reply: take a template that does, or give it a weight of 0",
      )
    const { prompt, reply } = written
    checkThought(writer.messages[index]!, reply, index)
    rows.add({ prompt, ...upToEnd(codec, writer.encode, reply), weight })
  }
  return rows.rows()
}

/** A thought that the template drops would not be learned: the model would be taught not to think. */
function checkThought({ reasoning_content: thought = "" }: ChatMessage, reply: string, index: number): void {
  if (reply.includes(thought.trim())) return
  throw refusedByTemplate(new NotRendered(`messages[${index}].reasoning_content`, "reasoning"))
}
