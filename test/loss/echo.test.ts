import { describe, expect, it } from "vitest"
import { clippedSurrogate } from "../../src/loss/clipped-surrogate.ts"
import { composeLoss } from "../../src/loss/compose-loss.ts"
import { echo } from "../../src/loss/echo.ts"
import type { LossInput } from "../../src/loss/token-loss.ts"
import { close, exactInput, slopes } from "./inputs.ts"

const clip = { clipLow: 0.1, clipHigh: 0.2, clipDual: 1.3 }

/** Every third segment is an observation. */
function mixedInput(): LossInput {
  const input = exactInput(21, "completion", true)
  return { ...input, offPolicy: Uint8Array.from(input.clipScale!, (_, segment) => Number(segment % 3 === 1)) }
}

/** The definition, token by token in float64. */
function defined(input: LossInput, alpha: number): number {
  const { tokens, segmentOffsets, logProbs, oldLogProbs, advantages, weights, clipScale, offPolicy } = input
  let [policy, policyTokens, observed, observedTokens] = [0, 0, 0, 0]
  for (let t = 0; t < tokens; t++) {
    const segment = segmentOffsets.findLastIndex((start) => start <= t)
    if (offPolicy![segment] === 1) {
      observed -= logProbs[t]!
      observedTokens++
      continue
    }
    const [A, r, width] = [advantages[t]!, Math.exp(logProbs[t]! - oldLogProbs[t]!), clipScale![segment]!]
    const held = Math.min(Math.max(r, 1 - 0.1 * width), 1 + 0.2 * width)
    const value = Math.max(-A * r, -A * held)
    policy += weights![t]! * (A < 0 ? Math.min(value, -1.3 * A) : value)
    policyTokens++
  }
  return policy / policyTokens + (alpha * observed) / observedTokens
}

describe("echo", () => {
  it.each([0.1, 2])("matches its definition, and its gradient finite differences, with α = %s", (alpha) => {
    const input = mixedInput()
    const { loss, gradient, metrics } = composeLoss(echo({ ...clip, alpha })).evaluate(input)
    expect(loss).toBeCloseTo(defined(input, alpha), 10)
    expect([...gradient]).toEqual(
      close(
        slopes(input, (moved) => defined(moved, alpha)),
        5,
      ),
    )
    expect(metrics!["loss/cross-entropy"]).toBeCloseTo(defined(input, 1) - defined(input, 0), 10)
  })

  it("is the clipped surrogate without observations, and 0 where all advantages are 0", () => {
    const input = exactInput(22, "completion", false)
    const { loss, gradient } = echo(clip).evaluate(input)
    const plain = clippedSurrogate(clip).evaluate(input)
    expect([loss, ...gradient]).toEqual([plain.loss, ...plain.gradient].map((value) => expect.closeTo(value, 6)))
    const equal = echo().evaluate({ ...input, advantages: new Float64Array(input.tokens) })
    expect([equal.loss, ...equal.gradient].map(Math.abs)).toEqual(new Array(input.tokens + 1).fill(0))
  })

  it("takes a schedule of α", () => {
    const input = mixedInput()
    const ramp = { from: 0, to: 1, over: 10 }
    const at = (iteration: number) => ({ ...input, progress: { iteration, iterations: 20 } })
    expect(echo({ ...clip, alpha: ramp }).evaluate(at(0)).loss).toBeCloseTo(defined(input, 0), 10)
    expect(echo({ ...clip, alpha: ramp }).evaluate(at(10)).loss).toBeCloseTo(defined(input, 1), 10)
  })
})
