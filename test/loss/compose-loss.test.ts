import { describe, expect, it } from "vitest"
import type { ClippedSurrogate } from "../../src/engine/engine.ts"
import { clippedSurrogate } from "../../src/loss/clipped-surrogate.ts"
import { composeLoss } from "../../src/loss/compose-loss.ts"
import { crossEntropy } from "../../src/loss/cross-entropy.ts"
import type { LossInput, TokenLoss } from "../../src/loss/token-loss.ts"
import { badArgument } from "../kernels/bad-argument.ts"
import { close, exactInput, now, ofRatios, slopes } from "./inputs.ts"

const progress = (iteration: number) => ({ iteration, iterations: 10 })
const referenceLogProbs = Float32Array.of(-1.5, -1)
const input = ofRatios([{ ratios: [1, 1.1], advantage: 1, more: { referenceLogProbs } }])

describe("composeLoss", () => {
  it("needs only the inputs of terms with nonzero weight", () => {
    const policy: TokenLoss = { ...clippedSurrogate(), needs: ["old"] }
    expect(composeLoss(policy).needs).toEqual(["old"])
    expect(composeLoss(policy, { klWeight: 0.1, entropyWeight: 0.01 }).needs).toEqual(["old", "reference", "entropy"])
    // A weight that begins at 0 will need it later.
    expect(composeLoss(policy, { klWeight: { from: 0, to: 0.1 } }).needs).toEqual(["old", "reference"])
    expect(composeLoss(policy, { entropyWeight: () => 0 }).needs).toEqual(["old", "entropy"])
    expect(composeLoss(policy, { teacherWeight: 0.01 }).needs).toEqual(["old", "teacher"])
  })

  it("has the native form in each iteration", () => {
    const clip = {
      clipLow: 0.1,
      clipHigh: 0.3,
      clipDual: 4,
      importanceSamplingLevel: "sequence",
      skipZeroAdvantage: false,
    } as const
    const terms = {
      klWeight: { from: 0, to: 1 },
      klEstimator: "k2",
      entropyWeight: 0.5,
      aggregation: "sequence-mean-token-mean",
    } as const
    const wanted: ClippedSurrogate = { kind: "clipped-surrogate", ...clip, ...terms, klWeight: 0.5 }
    expect(composeLoss(clippedSurrogate(clip), terms).native!(progress(5))).toEqual(wanted)
  })

  it("has no native form if the engine does not support the policy loss", () => {
    const own: TokenLoss = { name: "own", evaluate: () => ({ loss: 0, gradient: new Float32Array(2) }) }
    expect(composeLoss(own).native!(progress(0))).toBeUndefined()
    expect(composeLoss(crossEntropy()).native!(progress(0))).toEqual({ kind: "cross-entropy" })
    expect(composeLoss(crossEntropy(), { klWeight: 0.1 }).native!(progress(0))).toBeUndefined()
    expect(composeLoss(crossEntropy(), { aggregation: "sequence-mean-token-sum" }).native!(progress(0))).toBeUndefined()
    const twice = composeLoss(composeLoss(clippedSurrogate(), { klWeight: 0.1 }), { klWeight: 0.1 })
    expect(twice.native!(progress(0))).toBeUndefined()
  })

  it("adds terms with their weights at the progress, without changing the output of the policy loss", () => {
    const gradient = Float32Array.of(1, 2)
    const own: TokenLoss = { name: "own", evaluate: () => ({ loss: 7, gradient, metrics: { "own/count": 3 } }) }
    const loss = composeLoss(own, { klWeight: { from: 0, to: 1 }, klEstimator: "k1", entropyWeight: 0.5 })
    const entropies = Float32Array.of(1, 3)
    const found = loss.evaluate({ ...input, entropies, progress: progress(5) })
    const kl = [-1 + 1.5, Math.log(1.1) - 1 + 1]
    expect(found.loss).toBeCloseTo(7 + (0.5 * (kl[0]! + kl[1]!)) / 2 - 0.5 * 2, 5)
    expect([...found.gradient]).toEqual([1.25, 2.25])
    expect([...found.entropyGradient!]).toEqual([-0.25, -0.25])
    expect(found.metrics).toEqual({ "own/count": 3, "loss/kl": expect.closeTo((kl[0]! + kl[1]!) / 2, 5) })
    expect([...gradient]).toEqual([1, 2])
  })

  it("reports the KL at weight 0 if there is a reference policy, and 0 otherwise", () => {
    const { referenceLogProbs: _, ...without } = input
    const loss = composeLoss(clippedSurrogate(), { klEstimator: "k1" })
    expect(loss.evaluate(input).metrics!["loss/kl"]).toBeGreaterThan(0)
    expect(loss.evaluate(without).metrics).not.toHaveProperty("loss/kl")
    expect(loss.evaluate(input).gradient).toEqual(loss.evaluate(without).gradient)
  })

  it.each([
    [5, 0.3],
    [0, 2],
  ])("adds the distance to a teacher, gated by a slope of %d (SDAR)", (teacherGate, teacherWeight) => {
    const exact = exactInput(4, "completion", true)
    const teacherLogProbs = exact.logProbs.map((value, t) => value + [0.4, -0.7, 0.05, 0, -3][t % 5]!)
    const taught = { ...exact, teacherLogProbs }
    const aggregation = "sequence-mean-token-mean"
    const whole = composeLoss(clippedSurrogate(), { teacherWeight, teacherGate, aggregation })
    const plain = composeLoss(clippedSurrogate(), { aggregation })
    const gate = (t: number) => 1 / (1 + Math.exp(-teacherGate * (teacherLogProbs[t]! - exact.logProbs[t]!)))
    // The gates are constants: those of where it is differentiated.
    const term = ({ logProbs, offsets }: LossInput) => {
      let total = 0
      for (let s = 0; s + 1 < offsets.length; s++)
        for (let t = offsets[s]!; t < offsets[s + 1]!; t++)
          total += (gate(t) * (teacherLogProbs[t]! - logProbs[t]!)) / (offsets[s + 1]! - offsets[s]!)
      return (teacherWeight * total) / (offsets.length - 1)
    }
    const [found, without] = [whole.evaluate(taught), plain.evaluate(taught)]
    expect(found.loss - without.loss).toBeCloseTo(term(exact), 10)
    const added = slopes(taught, term)
    expect([...found.gradient]).toEqual(
      close(
        [...without.gradient].map((value, t) => value + added[t]!),
        5,
      ),
    )
    const mean = (of: (t: number) => number) =>
      Array.from(teacherLogProbs, (_, t) => of(t)).reduce((a, b) => a + b) / exact.tokens
    expect(found.metrics).toMatchObject({
      "teacher/log-ratio": expect.closeTo(
        mean((t) => teacherLogProbs[t]! - exact.logProbs[t]!),
        10,
      ),
      "teacher/gate": expect.closeTo(mean(gate), 10),
    })
    expect(whole.native!(progress(0))).toBeUndefined()
    const far = { ...taught, teacherLogProbs: exact.logProbs.map((value, t) => value + (t % 2 ? -1e4 : 1e4)) }
    expect(whole.evaluate(far).gradient.every(Number.isFinite)).toBe(true)
  })

  it("names the loss whose output is invalid", () => {
    const own: TokenLoss = { name: "own", evaluate: () => undefined as never }
    expect(() => composeLoss(own).evaluate(input)).toThrow(badArgument(/^The loss own gave undefined/))
  })

  it("keeps the state of the policy loss", () => {
    let memory = 1
    const own: TokenLoss = {
      name: "own",
      evaluate: () => ({ loss: 0, gradient: new Float32Array(2) }),
      state: () => ({ json: memory }),
      restore: ({ json }) => {
        memory = json as number
      },
    }
    const loss = composeLoss(own)
    expect(loss.state!()).toEqual({ json: 1 })
    loss.restore!({ json: 4 })
    expect(memory).toBe(4)
    expect(composeLoss(clippedSurrogate())).not.toHaveProperty("state")
  })

  it.each<[string, () => unknown, RegExp]>([
    [
      "a weight below 0",
      () => composeLoss(clippedSurrogate(), { klWeight: -1 }),
      /klWeight must be at least 0, not -1/,
    ],
    [
      "a schedule that leaves the numbers",
      () =>
        composeLoss(clippedSurrogate(), { klWeight: ({ iteration }) => (iteration === 0 ? 0 : NaN) }).evaluate(input),
      /klWeight must be a number.* NaN/,
    ],
    [
      "an unknown estimator",
      () => composeLoss(clippedSurrogate(), { klEstimator: "k4" as "k3" }),
      /klEstimator must be .* not "k4"/,
    ],
    [
      "a fixed length that is not given",
      () => composeLoss(clippedSurrogate(), { aggregation: "sequence-mean-fixed-length" }),
      /"sequence-mean-fixed-length" needs fixedLength/,
    ],
    [
      "a fixed length that nothing divides by",
      () => composeLoss(clippedSurrogate(), { fixedLength: 8 }),
      /fixedLength applies only to the aggregation .* not to "token-mean"/,
    ],
    [
      "half a fixed length",
      () => composeLoss(clippedSurrogate(), { aggregation: "sequence-mean-fixed-length", fixedLength: 0.5 }),
      /fixedLength must be an integer, not 0.5/,
    ],
    [
      "a KL without a reference",
      () => composeLoss(clippedSurrogate(), { klWeight: 1 }).evaluate(withoutReference()),
      /klWeight is not 0 and needs referenceLogProbs/,
    ],
    [
      "a bonus without entropies",
      () => composeLoss(clippedSurrogate(), { entropyWeight: 1 }).evaluate(input),
      /entropyWeight is not 0 and needs entropies/,
    ],
    [
      "a distance without a teacher",
      () => composeLoss(clippedSurrogate(), { teacherWeight: 1 }).evaluate(input),
      /teacherWeight is not 0 and needs teacherLogProbs/,
    ],
  ])("rejects %s", (_, call, message) => {
    expect(call).toThrow(badArgument(message))
  })
})

function withoutReference(): LossInput {
  return ofRatios([{ ratios: [1], advantage: 1 }], now)
}
