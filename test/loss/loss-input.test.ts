import { describe, expect, it } from "vitest"
import { type Sequence, stepSequence } from "../../src/engine/sequence.ts"
import { shares } from "../../src/engine/shares.ts"
import { asTokenLoss, evaluateLoss } from "../../src/loss/as-token-loss.ts"
import { checkLossOutput } from "../../src/loss/check-loss-output.ts"
import { clippedSurrogate } from "../../src/loss/clipped-surrogate.ts"
import { lossInput } from "../../src/loss/loss-input.ts"
import type { LossOutput, TokenLoss } from "../../src/loss/token-loss.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { badArgument } from "../kernels/bad-argument.ts"
import { now, row } from "./inputs.ts"

const floats = (...values: number[]) => Float32Array.from(values)
const nonFinite = (message: RegExp) =>
  expect.objectContaining({ name: "GigpoError", code: "NON_FINITE", message: expect.stringMatching(message) })

describe("shares", () => {
  const offsets = Int32Array.of(0, 1, 1, 4) // one token, none, three

  it("sum over the batch as the aggregation defines; sequences without tokens do not count", () => {
    expect([...shares("token-mean", offsets)]).toEqual([1 / 4, 1 / 4, 1 / 4, 1 / 4])
    expect([...shares("token-sum", offsets)]).toEqual([1, 1, 1, 1])
    expect([...shares("sequence-mean-fixed-length", offsets, 8)]).toEqual([1 / 16, 1 / 16, 1 / 16, 1 / 16])
    expect([...shares("sequence-mean-token-sum", offsets)]).toEqual([1 / 2, 1 / 2, 1 / 2, 1 / 2])
    expect([...shares("sequence-mean-token-mean", offsets)]).toEqual([1 / 2, 1 / 6, 1 / 6, 1 / 6])
    expect(shares("token-mean", Int32Array.of(0))).toHaveLength(0)
  })
})

describe("lossInput", () => {
  const rows: Sequence[] = [
    row(
      {
        length: 2,
        logProbs: floats(-1, -2),
        oldLogProbs: floats(-1.5, -2.5),
        advantage: 3,
        step: 4,
        episode: 1,
        task: 0,
      },
      { length: 1, logProbs: floats(-3), advantage: floats(5), weights: floats(0.5), step: 5, episode: 1, task: 0 },
    ),
    row({ length: 1, logProbs: floats(-4), advantage: -1, clipScale: 2 }),
  ]
  const statistics = { logProbs: floats(-0.5, -1, -2, -3), entropies: floats(1, 2, 3, 4) }

  it("concatenates the spans of all rows", () => {
    const input = lossInput(rows, statistics, { ...now, needs: ["entropy"] })
    expect(input).toEqual({
      tokens: 4,
      offsets: Int32Array.of(0, 2, 3, 4),
      segmentOffsets: Int32Array.of(0, 2, 3, 4),
      sequenceOffsets: Int32Array.of(0, 3, 4),
      logProbs: floats(-0.5, -1, -2, -3),
      oldLogProbs: floats(-1.5, -2.5, -3, -4),
      entropies: floats(1, 2, 3, 4),
      advantages: floats(3, 3, 5, -1),
      weights: floats(1, 1, 0.5, 1),
      shares: new Float64Array(4).fill(1 / 4),
      clipScale: Float64Array.of(1, 1, 2),
      steps: Int32Array.of(4, 5, -1),
      episodes: Int32Array.of(1, 1, -1),
      tasks: Int32Array.of(0, 0, -1),
      ...now,
    })
  })

  it("counts rows as sequences on request", () => {
    const input = lossInput(rows, statistics, { ...now, unit: "conversation" })
    expect(input.offsets).toEqual(Int32Array.of(0, 3, 4))
    expect([...input.shares]).toEqual([1 / 4, 1 / 4, 1 / 4, 1 / 4])
    expect(input).not.toHaveProperty("entropies")
    expect(input).not.toHaveProperty("referenceLogProbs")
  })

  it("needs no inputs for completions of an expert", () => {
    const completions = [stepSequence(Int32Array.of(1), Int32Array.of(2, 3))]
    const input = lossInput(completions, { logProbs: floats(-1, -2) }, { ...now, imitation: true })
    expect(input).toMatchObject({ oldLogProbs: floats(-1, -2), advantages: floats(1, 1) })
    expect(() => lossInput(completions, { logProbs: floats(-1, -2) }, now)).toThrow(
      badArgument(
        /^sequences\[0\]: logProbs must be a Float32Array with one number for each of the 2 sampled tokens\.$/,
      ),
    )
  })

  const one = (more: object) => [row({ length: 2, logProbs: floats(-1, -1), advantage: 1, ...more })]
  const stats = { logProbs: floats(-1, -1) }
  it.each<[string, () => unknown, unknown]>([
    [
      "no advantage",
      () => lossInput(one({ advantage: undefined }), stats, now),
      nonFinite(/^sequences\[0\]\.advantage is undefined/),
    ],
    [
      "a broken advantage",
      () => lossInput(one({ advantage: NaN }), stats, now),
      nonFinite(/^sequences\[0\]\.advantage is NaN/),
    ],
    [
      "a broken log-probability of the second span",
      () =>
        lossInput(
          [
            row(
              { length: 1, logProbs: floats(0), advantage: 1 },
              { length: 1, logProbs: floats(Infinity), advantage: 1 },
            ),
          ],
          stats,
          now,
        ),
      nonFinite(/^sequences\[0\]\.segments\[1\]\.logProbs contains/),
    ],
    [
      "a policy's broken number",
      () => lossInput(one({}), { logProbs: floats(-1, NaN) }, now),
      nonFinite(/sequences\[0\].*policy/),
    ],
    [
      "too few weights",
      () => lossInput(one({ weights: floats(1) }), stats, now),
      badArgument(/weights must be.*2 sampled/),
    ],
    ["a negative clipScale", () => lossInput(one({ clipScale: -1 }), stats, now), nonFinite(/clipScale is -1/)],
    [
      "plain arrays",
      () => lossInput(one({ logProbs: [-1, -1] }), stats, now),
      badArgument(/^sequences\[0\]: logProbs must be a Float32Array with one number for each .*\.$/),
    ],
    [
      "a span that ends behind its row",
      () => lossInput([{ tokens: new Int32Array(2), segments: [{ start: 1, length: 2 }] }], stats, now),
      badArgument(/^sequences\[0\]: it ends at 3, but the sequence has 2 tokens/),
    ],
    [
      "no reference",
      () => lossInput(one({}), stats, { ...now, needs: ["reference"] }),
      badArgument(/referenceLogProbs must/),
    ],
    [
      "nothing recomputed",
      () => lossInput(one({}), stats, { ...now, needs: ["old"] }),
      badArgument(/oldLogProbs must be/),
    ],
    [
      "no entropies",
      () => lossInput(one({}), stats, { ...now, needs: ["entropy"] }),
      badArgument(/no entropies of the policy/),
    ],
    [
      "statistics of another length",
      () => lossInput(one({}), { logProbs: floats(1) }, now),
      badArgument(/There are 1 logProbs of the policy for 2 sampled tokens/),
    ],
    [
      "an empty reply",
      () => lossInput([row({ length: 0 })], { logProbs: floats() }, now),
      badArgument(/the completion is empty/),
    ],
  ])("rejects %s", (_, call, error) => {
    expect(call).toThrow(error)
  })
})

describe("asTokenLoss", () => {
  it("accepts a loss unchanged, and a function under its name", () => {
    const loss = clippedSurrogate()
    expect(asTokenLoss(loss)).toBe(loss)
    const zero = (): LossOutput => ({ loss: 0, gradient: floats() })
    expect(asTokenLoss(zero)).toEqual({ name: "zero", evaluate: zero })
    expect(asTokenLoss(() => ({ loss: 0, gradient: floats() })).name).toBe("loss")
  })

  it.each<[unknown, RegExp]>([
    ["ppo", /^The loss must be a function \(input\) => output, or an object with name and evaluate, not "ppo"\.$/],
    [null, /must be a function .*, not empty\.$/],
    [class Mine {}, /^The loss Mine is a class/],
    [{ evaluate: () => 0 }, /has no name/],
    [{ name: "mine" }, /mine has no function evaluate/],
    [{ name: "mine", evaluate: () => 0, native: {} }, /native that is not a function/],
    [{ name: "mine", evaluate: () => 0, state: () => 0 }, /needs both/],
    [{ name: "mine", evaluate: () => 0, needs: ["tutor"] }, /needs "tutor"; known: "old", "reference", "entropy"/],
    [{ name: "mine", evaluate: () => 0, needs: ["entropies"] }, /needs "entropies"; did you mean "entropy"\?$/],
  ])("rejects %j", (value, message) => {
    expect(() => asTokenLoss(value as TokenLoss)).toThrow(badArgument(message))
  })
})

describe("checkLossOutput", () => {
  const input = lossInput(
    [row({ length: 1, logProbs: floats(-1), advantage: 1 }, { length: 2, logProbs: floats(-1, -1), advantage: 1 })],
    { logProbs: floats(-1, -1, -1) },
    now,
  )
  const gradient = floats(1, 2, 3)

  it("accepts valid output", () => {
    checkLossOutput({ loss: 1, gradient, entropyGradient: gradient, metrics: { "a/b": 1 } }, input, "mine")
  })

  it.each<[string, unknown, unknown]>([
    ["nothing", undefined, badArgument(/The loss mine gave undefined/)],
    ["a promise", Promise.resolve(), badArgument(/gave a promise .*; evaluate must not be async\.$/)],
    ["a bare gradient", gradient, badArgument(/an array instead of output; return \{ loss, gradient \}\.$/)],
    [
      "a loss that it makes",
      { name: "x", evaluate() {} },
      badArgument(/a loss instead of output: call the function that/),
    ],
    ["a function", () => 0, badArgument(/a function instead of output: call the function that makes the loss/)],
    [
      "a key of another name",
      { loss: 1, gradients: gradient },
      badArgument(/"gradients" is not known \(did you mean "gradient"\?\)\.$/),
    ],
    ["no loss", { gradient }, badArgument(/a loss of type undefined/)],
    ["a broken loss", { loss: NaN, gradient }, nonFinite(/the loss NaN/)],
    [
      "another type",
      { loss: 1, gradient: new Float64Array(3) },
      badArgument(/gradient that is not a Float32Array of length 3/),
    ],
    ["another length", { loss: 1, gradient: floats(1) }, badArgument(/gradient that is no/)],
    ["a broken gradient", { loss: 1, gradient: floats(1, 2, Infinity) }, nonFinite(/Infinity for token 1 of span 1/)],
    ["a broken bonus", { loss: 1, gradient, entropyGradient: floats(NaN, 0, 0) }, nonFinite(/entropyGradient of NaN/)],
    ["another bonus", { loss: 1, gradient, entropyGradient: [0] }, badArgument(/gave an entropyGradient that is no/)],
    ["metrics in a row", { loss: 1, gradient, metrics: [1] }, badArgument(/metrics that are not an object/)],
    ["a broken metric", { loss: 1, gradient, metrics: { x: NaN } }, nonFinite(/metric "x" as NaN/)],
  ])("rejects %s", (_, output, error) => {
    expect(() => checkLossOutput(output as LossOutput, input, "mine")).toThrow(error)
  })
})

describe("evaluateLoss", () => {
  const input = lossInput([row({ length: 1, logProbs: floats(-1), advantage: 1 })], { logProbs: floats(-1) }, now)

  it("returns the output of a loss, and names the loss if the output is invalid or it throws", () => {
    const output = { loss: 0, gradient: floats(0) }
    expect(evaluateLoss({ name: "mine", evaluate: () => output }, input)).toBe(output)
    expect(() => evaluateLoss({ name: "mine", evaluate: () => undefined as never }, input)).toThrow(
      badArgument(/^The loss mine gave undefined instead of output; return \{ loss, gradient \}\.$/),
    )
    const late = async () => Promise.reject(new Error("late")) as never
    expect(() => evaluateLoss({ name: "mine", evaluate: late as never }, input)).toThrow(/must not be async/)
    const cause = new TypeError("x is not a function")
    const throwing = (thrown: unknown) => () =>
      evaluateLoss(
        {
          name: "mine",
          evaluate() {
            throw thrown
          },
        },
        input,
      )
    expect(throwing(cause)).toThrow(
      expect.objectContaining({ code: "BAD_ARGUMENT", message: "The loss mine threw: x is not a function", cause }),
    )
    const ours = new GigpoError("NON_FINITE", "Of its own.")
    expect(throwing(ours)).toThrow(ours)
  })
})
