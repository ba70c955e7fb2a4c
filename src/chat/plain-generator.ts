import { randomBytes } from "node:crypto"
import type { Sampler } from "../engine/engine.ts"
import { Random } from "../util/random.ts"
import { type ReplyCodec, ReplyGenerator } from "./reply-generator.ts"
import { Transcript } from "./transcript.ts"

export interface PlainGeneratorOptions {
  readonly policy: Sampler
  readonly codec: ReplyCodec
  /** Where a call does not say. */
  readonly temperature: number
  /** Most tokens of a reply where a call does not say. */
  readonly maxCompletionTokens: number
}

/** Replies that are remembered, each with its prompt: four bytes a token. Calls that go on from older ones are tokenised anew. */
const remembered = 1000

/** A model's voice outside of training: calls choose the temperature, and replies are drawn anew unless a call has a seed. */
export function plainGenerator({
  policy,
  codec,
  temperature,
  maxCompletionTokens,
}: PlainGeneratorOptions): ReplyGenerator {
  return new ReplyGenerator({
    ...{ policy, codec, maxCompletionTokens: { value: maxCompletionTokens, fixed: false } },
    transcript: new Transcript(remembered),
    temperature: { value: temperature, fixed: false },
    key: ({ call, history, number }) =>
      call.seed === undefined
        ? [randomBytes(4).readUInt32LE(), randomBytes(4).readUInt32LE()]
        : new Random(call.seed).fork(history, number).key,
  })
}
