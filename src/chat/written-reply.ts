import type { ChatCodec } from "../tokenizer/chat-codec.ts"

/** A reply as the chat template writes it, with the prompt that it stands behind. */
export interface WrittenReply {
  readonly prompt: string
  readonly reply: string
}

/**
 * Splits what the template writes of a chat with a reply at the prompt for that reply; undefined where it writes the reply somewhere
 * else. Templates open a thought in the prompt, or forbid one, and some drop the thought of a reply that has been given. Our reading: a
 * thought that the prompt has opened is put in and ended, as the model would have to, and a thought that the prompt forbids is learned
 * behind a prompt that does not.
 *
 * @param asked what the template writes up to the reply, with the opening of the assistant's turn
 * @param whole what it writes up to the end of the reply
 * @param opening what `asked` begins of the reply
 */
export function splitReply(asked: string, whole: string, opening: string, reasoning: string): WrittenReply | undefined {
  if (whole.startsWith(asked)) return { prompt: asked, reply: whole.slice(asked.length) }
  const before = asked.slice(0, asked.length - opening.length)
  if (opening === "" || !whole.startsWith(before)) return undefined
  const said = whole.slice(before.length)
  if (said.startsWith("<think>")) return { prompt: before, reply: said }
  return { prompt: asked, reply: opening.includes("</think>") ? said : `${reasoning}\n</think>\n\n${said}` }
}

/**
 * A reply up to the token that ends its turn, which it is given where the template writes none; what the template writes behind that is
 * not said.
 */
export function upToEnd(
  codec: Pick<ChatCodec, "eosTokens" | "decode">,
  encode: (text: string) => Int32Array,
  text: string,
): { readonly reply: string; readonly tokens: Int32Array } {
  const behind = codec.eosTokens.map((token) => {
    const end = codec.decode(Int32Array.of(token), { skipSpecial: false })
    const at = text.lastIndexOf(end)
    return end === "" || at < 0 ? 0 : at + end.length
  })
  const most = Math.max(...behind)
  if (most === 0) return { reply: text, tokens: Int32Array.from([...encode(text), codec.eosTokens[0]!]) }
  const reply = text.slice(0, most)
  return { reply, tokens: encode(reply) }
}
