import { randomBytes } from "node:crypto"
import type { Sampler } from "../engine/engine.ts"
import { Random } from "../util/random.ts"
import { type CompletionCodec, CompletionGenerator } from "./completion-generator.ts"
import { Transcript } from "./transcript.ts"

export interface PlainGeneratorOptions {
  readonly policy: Sampler
  readonly codec: CompletionCodec
  /** Temperature of calls without one. */
  readonly temperature: number
  /** Maximum tokens of a completion for calls without a limit. */
  readonly maxCompletionTokens: number
}

/**
 * Number of cached completions with their prompts, at four bytes per token. Continuations of older ones are tokenized
 * again.
 */
const remembered = 1000

/**
 * Generator for use outside of training: calls choose the temperature, and sampling is random unless a call has a seed.
 */
export function plainGenerator({
  policy,
  codec,
  temperature,
  maxCompletionTokens,
}: PlainGeneratorOptions): CompletionGenerator {
  return new CompletionGenerator({
    ...{ policy, codec, maxCompletionTokens: { value: maxCompletionTokens, fixed: false } },
    transcript: new Transcript(remembered),
    temperature: { value: temperature, fixed: false },
    key: ({ call, history, number }) =>
      call.seed === undefined
        ? [randomBytes(4).readUInt32LE(), randomBytes(4).readUInt32LE()]
        : new Random(call.seed).derive(history, number).key,
  })
}
