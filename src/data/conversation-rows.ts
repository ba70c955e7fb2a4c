import type { Row } from "../engine/rows.ts"
import { GigpoError } from "../errors.ts"
import { badField } from "../server/api-error.ts"
import type { CallMessage } from "../server/call.ts"
import { forTemplate, refusedByTemplate, toolVariables } from "../server/prompt.ts"
import { toolFormat } from "../server/tools/format.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import type { Tokenizer } from "../tokenizer/tokenizer.ts"
import type { Conversation } from "./conversation.ts"
import { GrowingRows } from "./growing-rows.ts"

/** A tokenizer, as far as transcripts need it. */
export type TranscriptCodec = ChatCodec & Pick<Tokenizer, "renderChat" | "chatTemplate">

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
): Promise<Row[]> {
  const rows = new GrowingRows(codec.encode)
  const written = messages.map(forTemplate)
  const render = async (end: number, addGenerationPrompt: boolean): Promise<string> =>
    await codec
      .renderChat(written.slice(0, end), {
        addGenerationPrompt,
        variables: { ...variables, ...toolVariables(tools) },
      })
      .catch((error: unknown) => {
        throw refusedByTemplate(error)
      })
  for (const [index, weight] of weights.entries()) {
    if (weight === 0) continue
    if (index === 0)
      throw badField("messages[0]", 'is a reply to nothing: begin with a user\'s, or give it "weight": 0')
    const [asked, whole] = [await render(index, true), await render(index + 1, false)]
    const { prompt, reply } = apart(
      asked,
      whole,
      toolFormat(codec.chatTemplate).opening(asked),
      messages[index]!,
      index,
    )
    rows.add({ prompt, ...upToEnd(codec, reply), weight })
  }
  return rows.rows()
}

/**
 * What the template writes with a reply, as the prompt for it and the reply. Templates open a thought in the prompt, or forbid one, and
 * some drop the thought of a reply that has been given. Our reading: a thought that the prompt has opened is put in and ended, as the
 * model would have to, and a thought that the prompt forbids is learned behind a prompt that does not.
 */
function apart(
  asked: string,
  whole: string,
  opening: string,
  message: CallMessage,
  index: number,
): { readonly prompt: string; readonly reply: string } {
  if (whole.startsWith(asked)) return { prompt: asked, reply: whole.slice(asked.length) }
  const before = asked.slice(0, asked.length - opening.length)
  if (opening === "" || !whole.startsWith(before))
    throw badField(
      `messages[${index}]`,
      "is not written by the chat template where it asks for a reply: take a template that does, or give it a weight of 0",
    )
  const said = whole.slice(before.length)
  if (said.startsWith("<think>")) return { prompt: before, reply: said }
  const { reasoning = "" } = message as { readonly reasoning?: string }
  return { prompt: asked, reply: opening.includes("</think>") ? said : `${reasoning}\n</think>\n\n${said}` }
}

/** A reply with the token that ends its turn, which it is given where the template writes none; what the template writes behind that is not said. */
function upToEnd(codec: TranscriptCodec, text: string): { readonly reply: string; readonly tokens: Int32Array } {
  const behind = codec.eosTokens.map((token) => {
    const end = codec.decode(Int32Array.of(token), { skipSpecial: false })
    const at = text.lastIndexOf(end)
    return end === "" || at < 0 ? 0 : at + end.length
  })
  const most = Math.max(...behind)
  if (most === 0) return { reply: text, tokens: Int32Array.from([...codec.encode(text), codec.eosTokens[0]!]) }
  const reply = text.slice(0, most)
  return { reply, tokens: codec.encode(reply) }
}
