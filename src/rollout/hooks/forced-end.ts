import type { SampleRequest } from "../../engine/engine.ts"
import type { ChatCodec } from "../../tokenizer/chat-codec.ts"
import { tokenTexts } from "../../tokenizer/token-texts.ts"
import { joined } from "../../util/joined.ts"
import { Random } from "../../util/random.ts"
import type { SampledCompletion, SamplingTurn } from "../hooks.ts"

// Forced end of thinking: the closing tag is inserted into the completion, which continues from there in a second request.

/** Token range of the first thinking part of a completion: from `start`, before `end`. */
export interface Thought {
  readonly start: number
  readonly end: number
  /** Whether the completion contains the closing tag. */
  readonly closed: boolean
}

/** Finds the first thinking part of a completion; undefined if there is none. A token belongs to the part in which its text starts. */
export function openThought(
  tokenizer: Pick<ChatCodec, "decode">,
  tokens: Int32Array,
  { openTag, closeTag }: { readonly openTag: string; readonly closeTag: string },
): Thought | undefined {
  const texts = tokenTexts(tokenizer, tokens)
  const text = texts.join("")
  const opened = text.indexOf(openTag)
  if (opened < 0) return undefined
  const from = opened + openTag.length
  const to = text.indexOf(closeTag, from)
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
  return { start: openTag === "" ? 0 : firstFrom(from), end: closed ? firstFrom(to) : tokens.length, closed }
}

/**
 * Replaces a completion after its first `kept` tokens by forced tokens and a sampled continuation. Forced tokens have log-probability and
 * entropy 0. The completion is returned unchanged if no room would be left.
 */
export async function goOn(
  completion: SampledCompletion,
  kept: number,
  forced: Int32Array,
  request: SampleRequest,
  sample: SamplingTurn["sample"],
): Promise<SampledCompletion> {
  const length = kept + forced.length
  const left = request.maxTokens - length
  if (left < 1) return completion
  const begun = joined(Int32Array, [completion.tokens.subarray(0, kept), forced])
  const prompt = joined(Int32Array, [request.prompt, begun])
  const { key } = new Random(request.key).derive("after", length)
  const rest = await sample({ ...request, prompt, maxTokens: left, key })
  const column = (of: (completion: SampledCompletion) => Float32Array) =>
    joined(Float32Array, [of(completion).subarray(0, kept), new Float32Array(forced.length), of(rest)])
  return {
    tokens: joined(Int32Array, [begun, rest.tokens]),
    logProbs: column(({ logProbs }) => logProbs),
    ...(completion.entropies && rest.entropies && { entropies: column(({ entropies }) => entropies!) }),
    ...(completion.top &&
      rest.top && {
        top: [...completion.top.slice(0, kept), ...Array.from(forced, (token) => [{ token, logProb: 0 }]), ...rest.top],
      }),
    finishReason: rest.finishReason,
    forced: Uint8Array.from({ length: length + rest.tokens.length }, (_, t) => (t >= kept && t < length ? 1 : 0)),
  }
}
