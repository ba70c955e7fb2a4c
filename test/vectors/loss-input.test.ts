import { describe, expect, it } from "vitest"
import { aggregationOf, lossInputOf, tableOf } from "./loss-input.ts"

const vector = {
  params: { aggregation: "seq-mean-token-sum-norm", divisor: 8 },
  inputs: {
    mask: [
      [1, 0, 1],
      [0, 0, 0],
      [1, 1, 0],
    ],
    logp: [
      [-1, 9, -2],
      [9, 9, 9],
      [-3, -4, 9],
    ],
    advantage: [5, 9, [6, 7, 9]],
  },
  expected: {},
}

describe("lossInputOf", () => {
  it("uses masked tokens, with gaps and without empty completions", () => {
    const input = lossInputOf(vector)
    expect(input).toMatchObject({
      tokens: 4,
      offsets: Int32Array.of(0, 2, 4),
      logProbs: Float64Array.of(-1, -2, -3, -4),
      oldLogProbs: Float64Array.of(-1, -2, -3, -4),
      advantages: Float64Array.of(5, 5, 6, 7),
    })
    for (const absent of ["weights", "referenceLogProbs"]) expect(input).not.toHaveProperty(absent)
  })

  it("gives a column its table back", () => {
    expect(tableOf(vector, [1, 2, 3, 4])).toEqual([
      [1, 0, 2],
      [0, 0, 0],
      [3, 4, 0],
    ])
  })
})

describe("aggregationOf", () => {
  it("knows the names of the vectors and no others", () => {
    expect(aggregationOf(vector)).toEqual({ aggregation: "sequence-mean-fixed-length", fixedLength: 8 })
    const named = (aggregation: string) => () => aggregationOf({ ...vector, params: { aggregation } })
    expect(named("token-sum")()).toEqual({ aggregation: "token-sum" })
    expect(named("mean")).toThrow(/no aggregation "mean"/)
    expect(named("seq-mean-token-sum-norm")).toThrow(/no divisor/)
  })
})
