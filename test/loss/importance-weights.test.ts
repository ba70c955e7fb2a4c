import { describe, expect, it } from "vitest"
import { importanceWeights, type RolloutCorrectionOptions } from "../../src/loss/importance-weights.ts"
import { badArgument } from "../kernels/bad-argument.ts"

const close = (values: readonly number[]) => values.map((value) => expect.closeTo(value, 12))

/** Ratios of three sequences, of which the second has one token. */
const ratios = [0.5, 3, 0.2, 1, 4, 0.5]
const offsets = [0, 2, 3, 6]
const sampler = [-1, -2, -0.5, -3, -1.5, -0.25]
const trainer = sampler.map((value, t) => value + Math.log(ratios[t]!))
const weights = (options?: RolloutCorrectionOptions) => [...importanceWeights(trainer, sampler, offsets, options)]

describe("importanceWeights", () => {
  it("are the ratios of tokens, truncated at 2 by default", () => {
    expect(weights()).toEqual(close([0.5, 2, 0.2, 1, 2, 0.5]))
    expect(weights({ truncate: Number.POSITIVE_INFINITY })).toEqual(close(ratios))
  })

  it("are the product over a sequence, for each of its tokens", () => {
    expect(weights({ level: "sequence", truncate: 1.8 })).toEqual(close([1.5, 1.5, 0.2, 1.8, 1.8, 1.8]))
  })

  it("are 0 outside of inclusive bounds, and truncated within", () => {
    const exact = importanceWeights([-1, -1, -1], [-1, -2, 0], [0, 3], {
      dropBelow: Math.exp(-1),
      dropAbove: Math.exp(1),
    })
    expect([...exact]).toEqual(close([1, 2, Math.exp(-1)]))
    expect(weights({ dropBelow: 0.3, dropAbove: 3.5, truncate: 2.5 })).toEqual(close([0.5, 2.5, 0, 1, 0, 0.5]))
  })

  it("have mean 1 over tokens, or over sequences, with normalize, including dropped ones", () => {
    const bounds = { dropBelow: 0.3, normalize: true, truncate: Number.POSITIVE_INFINITY }
    expect(weights(bounds)).toEqual(close([0.5, 3, 0, 1, 4, 0.5].map((weight) => weight / 1.5)))
    const mean = (1.5 + 0 + 2) / 3
    expect(weights({ ...bounds, level: "sequence" })).toEqual(close([1.5, 1.5, 0, 2, 2, 2].map((w) => w / mean)))
    expect(weights({ dropAbove: 0.1, normalize: true })).toEqual([0, 0, 0, 0, 0, 0])
  })

  it("skip tokens that the trainer has not computed", () => {
    const holes = [NaN, trainer[1]!, NaN, ...trainer.slice(3)]
    const found = (options: RolloutCorrectionOptions) => [...importanceWeights(holes, sampler, offsets, options)]
    const options = { normalize: true, truncate: Number.POSITIVE_INFINITY }
    const mean = (3 + 1 + 4 + 0.5) / 4
    expect(found(options)).toEqual(close([1, 3 / mean, 1, 1 / mean, 4 / mean, 0.5 / mean]))
    expect(found({ ...options, level: "sequence" })).toEqual(close([3, 3, 2.5, 2, 2, 2].map((weight) => weight / 2.5)))
  })

  it("are finite for any difference", () => {
    for (const level of ["token", "sequence"] as const)
      for (const far of [-1e4, 1e4]) {
        const found = importanceWeights([far, far], [0, 0], [0, 2], { level, truncate: Number.POSITIVE_INFINITY })
        expect([...found]).toEqual(close(Array(2).fill(Math.exp(Math.sign(far) * 20))))
      }
  })

  it("are empty without tokens", () => {
    expect(importanceWeights([], [], [0], { normalize: true })).toEqual(new Float64Array(0))
  })

  it.each<[string, () => unknown, RegExp]>([
    [
      "columns of two lengths",
      () => importanceWeights([0], [0, 0], [0, 1]),
      /1 log-probabilities of the trainer and 2/,
    ],
    ["offsets that fall", () => importanceWeights([0, 0], [0, 0], [0, 2, 1, 2]), /must not decrease from 0 to 2,/],
    ["offsets that stop short", () => importanceWeights([0, 0], [0, 0], [0, 1]), /must not decrease from 0 to 2,/],
    ["no offsets", () => importanceWeights([0], [0], []), /must not decrease from 0/],
    ["bounds without room", () => weights({ dropBelow: 3, dropAbove: 2 }), /dropBelow is 3 and dropAbove is 2/],
    ["an unknown level", () => weights({ level: "row" as "token" }), /level must be "token" or "sequence", not "row"/],
    ["a schedule", () => weights({ truncate: { from: 1, to: 2 } as never }), /truncate must be a number above 0/],
  ])("reject %s", (_, call, message) => {
    expect(call).toThrow(badArgument(message))
  })

  it("reject non-finite numbers, except NaN of the trainer", () => {
    for (const [ours, theirs] of [
      [-Infinity, 0],
      [0, Number.NaN],
      [Number.NaN, -Infinity],
    ] as const)
      expect(() => importanceWeights([0, ours], [0, theirs], [0, 2])).toThrow(
        expect.objectContaining({ code: "NON_FINITE", message: expect.stringMatching(/^Token 1 has log-probability/) }),
      )
  })
})
