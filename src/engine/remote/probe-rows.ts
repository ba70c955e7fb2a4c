import type { Sequence } from "../rows.ts"
import { datumOf, type RemoteLoss, scoringData } from "./data.ts"

// What a probe asks about: a row of six targets that are learned from, and the same cut behind the third.

const [length, prompt] = [10, 4]
/** Targets of the reply. */
export const replyTargets: number = length - prompt
/** All targets. */
export const allTargets: number = length - 1

export const probeRow = (vocabularySize: number, end: number = length): Sequence => ({
  tokens: Int32Array.from({ length: end }, (_, i) => (7 * i + 5) % Math.min(vocabularySize, 97)),
  spans: [{ start: prompt, length: end - prompt }],
})

/** It ends where half of the reply ends. */
export const cutRow = (vocabularySize: number): Sequence => probeRow(vocabularySize, prompt + replyTargets / 2)

export interface Shape {
  /** Default importance_sampling. */
  readonly loss?: string
  /** Whether the targets that count are told by weights. Default false. */
  readonly weights?: boolean
  /** Of the behaviour's log-probabilities against those of now. Default 0. */
  readonly shift?: number
  /** Only the first half of the reply has an advantage. Default false. */
  readonly half?: boolean
  /** Data, all the same. Default 1. */
  readonly copies?: number
}

/** Advantage 1 for every token of the reply, or for its first half. */
export function advantages(row: Sequence, now: Float32Array, shape: Shape = {}): RemoteLoss {
  const { loss = "importance_sampling", weights = false, shift = 0, half = false, copies = 1 } = shape
  const targets = row.tokens.length - 1
  const end = half ? prompt - 1 + replyTargets / 2 : targets
  const fill = (of: (i: number) => number) =>
    Float32Array.from({ length: targets }, (_, i) => (i >= prompt - 1 && i < end ? of(i) : 0))
  const datum = datumOf(row, {
    logprobs: fill((i) => now[i]! + shift),
    advantages: fill(() => 1),
    ...(weights && { weights: fill(() => 1) }),
  })
  const config: Record<string, number> = loss === "ppo" ? { clip_low_threshold: 0.8, clip_high_threshold: 1.2 } : {}
  return { loss, config, data: Array.from({ length: copies }, () => datum) }
}

/** Minus the weighted log-probability of the reply. */
export function weighted(row: Sequence, weight: number): RemoteLoss {
  const data = scoringData([row]).map(({ tokens, inputs }) => {
    const weights = (inputs.get("weights") as Float32Array).map((value) => weight * value)
    return { tokens, inputs: new Map(inputs).set("weights", weights) }
  })
  return { loss: "cross_entropy", config: {}, data }
}
