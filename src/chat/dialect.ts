import { GigpoError } from "../util/errors.ts"
import type { ApiError } from "./api-error.ts"
import type { Call } from "./call.ts"
import type { ReplyCodec, SaidReply } from "./reply-generator.ts"
import type { Piece } from "./tools/format.ts"

/** What says a token: its text and bytes. */
export type TokenText = (token: number) => { readonly token: string; readonly bytes: readonly number[] }

export function tokenText(codec: Pick<ReplyCodec, "decode" | "vocabulary">): TokenText {
  return (token) => {
    const text = codec.decode(Int32Array.of(token), { skipSpecial: false })
    return {
      token: text,
      bytes: [...((text.includes("\u{fffd}") ? bytesOf(codec, token) : undefined) ?? Buffer.from(text))],
    }
  }
}

/** A token may be less than a character; undefined where its bytes cannot be told. */
function bytesOf(codec: Pick<ReplyCodec, "vocabulary">, token: number): Uint8Array | undefined {
  try {
    const { bytes, offsets } = codec.vocabulary?.() ?? {}
    return bytes?.subarray(offsets![token], offsets![token + 1])
  } catch (error) {
    if (GigpoError.is(error)) return undefined // its tokens are not written as bytes
    throw error
  }
}

/** Of one call: tokens of its prompt, of all its replies, and of the thoughts in these. */
export interface TokenCount {
  readonly prompt: number
  readonly reply: number
  readonly reasoning: number
}

export function countTokens(replies: readonly Pick<SaidReply, "prompt" | "tokens" | "reasoningTokens">[]): TokenCount {
  const sum = (count: (reply: (typeof replies)[number]) => number) => replies.reduce((so, one) => so + count(one), 0)
  return {
    prompt: replies[0]!.prompt.length,
    reply: sum(({ tokens }) => tokens.length),
    reasoning: sum(({ reasoningTokens }) => reasoningTokens),
  }
}

/** The log-probability of each token of a reply, beside those of the most likely. */
export function toldLogProbs({ tokens, logProbs, completion }: SaidReply, textOf: TokenText): object[] {
  return Array.from(tokens, (token, at) => ({
    ...textOf(token),
    logprob: finite(logProbs[at]!),
    top_logprobs: (completion.top?.[at] ?? []).map((likely) => ({
      ...textOf(likely.token),
      logprob: finite(likely.logProb),
    })),
  }))
}

/** JSON has no infinities: what has no probability at all has this log-probability in OpenAI's API and in vLLM's. */
function finite(logProb: number): number {
  return Math.max(logProb, -9999)
}

/** A part of a reply, a call with its id. */
export type ReplyDelta = Exclude<Piece, { kind: "call" }> | (Extract<Piece, { kind: "call" }> & { readonly id: string })

/** One form in which calls come and are answered. */
export interface Dialect {
  /** @throws ApiError that names the field */
  read(body: unknown, textOf: TokenText): { readonly call: Call; readonly answer: Answer }
}

/** Writes an answer, whole or as events. */
export interface Answer {
  /** JSON. */
  whole(replies: readonly SaidReply[]): string
  begin(): string
  /** Of choice `index`, whose reply has this id. */
  piece(index: number, piece: ReplyDelta, reply: string): string
  end(replies: readonly SaidReply[]): string
  /** In place of the rest, where that cannot be sampled any more. */
  fail(error: ApiError): string
}
