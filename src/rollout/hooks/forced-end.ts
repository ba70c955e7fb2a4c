import type { SampleRequest } from "../../engine/engine.ts"
import type { ChatCodec } from "../../tokenizer/chat-codec.ts"
import { tokenTexts } from "../../tokenizer/token-texts.ts"
import { joined } from "../../util/joined.ts"
import { Random } from "../../util/random.ts"
import type { SampledReply, SamplingTurn } from "../hooks.ts"

// A thought that is ended from outside: its end is put into the reply, which goes on from there in a second request.

/** The tokens of a reply's first thought, from `start` on and before `end`. */
export interface Thought {
  readonly start: number
  readonly end: number
  /** Whether the reply itself ended it. */
  readonly closed: boolean
}

/** Undefined where the reply has no thought. A token belongs to the part in which its text begins. */
export function openThought(
  tokenizer: Pick<ChatCodec, "decode">,
  tokens: Int32Array,
  { opens, closes }: { readonly opens: string; readonly closes: string },
): Thought | undefined {
  const texts = tokenTexts(tokenizer, tokens)
  const text = texts.join("")
  const opened = text.indexOf(opens)
  if (opened < 0) return undefined
  const from = opened + opens.length
  const to = text.indexOf(closes, from)
  let at = 0
  const begins = texts.map((piece) => {
    at += piece.length
    return at - piece.length
  })
  const firstFrom = (place: number) => {
    const found = begins.findIndex((begin) => begin >= place)
    return found < 0 ? tokens.length : found
  }
  const closed = to >= 0
  return { start: opens === "" ? 0 : firstFrom(from), end: closed ? firstFrom(to) : tokens.length, closed }
}

/**
 * The reply with these tokens after its first `kept`, and what the policy says after them. What is put there was certain: its log-probability
 * and entropy are 0. The reply as it is, where they would leave no room.
 */
export async function goOn(
  reply: SampledReply,
  kept: number,
  forced: Int32Array,
  request: SampleRequest,
  sample: SamplingTurn["sample"],
): Promise<SampledReply> {
  const length = kept + forced.length
  const left = request.maxTokens - length
  if (left < 1) return reply
  const begun = joined(Int32Array, [reply.tokens.subarray(0, kept), forced])
  const prompt = joined(Int32Array, [request.prompt, begun])
  const { key } = new Random(request.key).fork("after", length)
  const rest = await sample({ ...request, prompt, maxTokens: left, key })
  const column = (of: (reply: SampledReply) => Float32Array) =>
    joined(Float32Array, [of(reply).subarray(0, kept), new Float32Array(forced.length), of(rest)])
  return {
    tokens: joined(Int32Array, [begun, rest.tokens]),
    logProbs: column(({ logProbs }) => logProbs),
    ...(reply.entropies && rest.entropies && { entropies: column(({ entropies }) => entropies!) }),
    ...(reply.top &&
      rest.top && {
        top: [...reply.top.slice(0, kept), ...Array.from(forced, (token) => [{ token, logProb: 0 }]), ...rest.top],
      }),
    finishReason: rest.finishReason,
    forced: Uint8Array.from({ length: length + rest.tokens.length }, (_, t) => (t >= kept && t < length ? 1 : 0)),
  }
}
