import { existsSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import {
  clippedSurrogate,
  groupAnchors,
  type SurrogateInput,
  type SurrogateOptions,
  tokenLogProbs,
} from "../src/kernels.ts"
import { Random } from "../src/random.ts"

const badArgument = (message: RegExp) =>
  expect.objectContaining({ name: "GigpoError", code: "BAD_ARGUMENT", message: expect.stringMatching(message) })

describe("tokenLogProbs", () => {
  it("is the log-softmax of one token a row, with the entropy of the row", () => {
    const [ln2, ln4] = [Math.log(2), Math.log(4)]
    // Rows of (1/2, 1/4, 1/4), and of certainty.
    const logits = Float32Array.of(7 + ln2, 7, 7, 0, 0, 500)
    const { logProbs, entropies } = tokenLogProbs(logits, 3, Int32Array.of(1, 2))
    expect(logProbs[0]).toBeCloseTo(-ln4, 6)
    expect(logProbs[1]).toBe(0)
    expect(entropies[0]).toBeCloseTo(1.5 * ln2, 6)
    expect(entropies[1]).toBe(0)
  })

  it.each([1, 0.3, 4])("agrees with double precision for vocabularies of any size at temperature %d", (temperature) => {
    const random = new Random(1)
    for (const vocabulary of [1, 2, 15, 16, 17, 100, 1000, 32_000]) {
      const rows = 3
      const logits = Float32Array.from({ length: rows * vocabulary }, () => 20 * (random.uniform() - 0.5))
      const tokens = Int32Array.from({ length: rows }, () => random.below(vocabulary))
      const { logProbs, entropies } = tokenLogProbs(logits, vocabulary, tokens, { temperature })
      for (let row = 0; row < rows; row++) {
        const scores = Array.from(logits.subarray(row * vocabulary, (row + 1) * vocabulary), (z) => z / temperature)
        const most = scores.reduce((a, b) => Math.max(a, b))
        const logSum = most + Math.log(scores.reduce((sum, score) => sum + Math.exp(score - most), 0))
        expect(logProbs[row]).toBeCloseTo(scores[tokens[row]!]! - logSum, 4)
        const entropy = scores.reduce((sum, score) => sum - Math.exp(score - logSum) * (score - logSum), 0)
        expect(entropies[row]).toBeCloseTo(entropy, 4)
      }
    }
  })

  it("keeps a token of probability 0 apart from a row that is broken", () => {
    const logits = Float32Array.of(0, -Infinity, 0, NaN)
    const { logProbs, entropies } = tokenLogProbs(logits, 2, Int32Array.of(1, 0))
    expect([...logProbs]).toEqual([-Infinity, NaN])
    expect([...entropies]).toEqual([0, NaN])
  })

  it("takes no rows", () => {
    expect(tokenLogProbs(new Float32Array(0), 5, new Int32Array(0)).logProbs.length).toBe(0)
  })

  it.each<[string, () => unknown, RegExp]>([
    ["logits of another size", () => tokenLogProbs(new Float32Array(5), 3, new Int32Array(2)), /need 6 logits, not 5/],
    [
      "a token beyond the vocabulary",
      () => tokenLogProbs(new Float32Array(3), 3, Int32Array.of(3)),
      /tokens\[0\] is 3/,
    ],
    ["a vocabulary of none", () => tokenLogProbs(new Float32Array(0), 0, new Int32Array(0)), /vocabulary must be/],
    [
      "a temperature of 0",
      () => tokenLogProbs(new Float32Array(3), 3, Int32Array.of(0), { temperature: 0 }),
      /temperature must be positive, not 0/,
    ],
  ])("refuses %s", (_, call, message) => {
    expect(call).toThrow(badArgument(message))
  })
})

describe("clippedSurrogate", () => {
  /** One row of tokens with these ratios and this advantage. */
  function row(ratios: readonly number[], advantage: number, more: Partial<SurrogateInput> = {}): SurrogateInput {
    return {
      logProbs: Float32Array.from(ratios, (ratio) => Math.log(ratio) - 1),
      oldLogProbs: Float32Array.from(ratios, () => -1),
      advantages: Float32Array.from(ratios, () => advantage),
      mask: Float32Array.from(ratios, () => 1),
      rows: Int32Array.of(ratios.length),
      ...more,
    }
  }
  const close = (values: readonly number[]) => values.map((value) => expect.closeTo(value, 5))

  it("raises the probability of good tokens, up to the clip", () => {
    const report = clippedSurrogate(row([0.5, 1, 1.1, 1.3], 2))
    expect([...report.gradient]).toEqual(close([-0.25, -0.5, -0.55, 0]))
    expect(report.loss).toBeCloseTo((-2 * (0.5 + 1 + 1.1 + 1.2)) / 4, 6)
    expect(report).toMatchObject({ clipFraction: 0.25, dualClipFraction: 0, kl: 0 })
    expect(report.ratio).toBeCloseTo(3.9 / 4, 6)
    expect(report.policyKl).toBeCloseTo(-Math.log(0.5 * 1.1 * 1.3) / 4, 6)
  })

  it("lowers the probability of bad ones, down to the clip, and up to the dual clip", () => {
    const report = clippedSurrogate(row([0.5, 1, 2, 5], -2))
    expect([...report.gradient]).toEqual(close([0, 0.5, 1, 0]))
    expect(report.loss).toBeCloseTo((2 * (0.8 + 1 + 2 + 3)) / 4, 6)
    expect(report).toMatchObject({ clipFraction: 0.25, dualClipFraction: 0.25 })
    const open = clippedSurrogate(row([0.5, 1, 2, 5], -2), { clipDual: Number.POSITIVE_INFINITY })
    expect([...open.gradient]).toEqual(close([0, 0.5, 1, 2.5]))
  })

  it("clips higher than lower where it is told to", () => {
    const input = row([1.25, 1.3], 1)
    expect([...clippedSurrogate(input).gradient]).toEqual([0, 0])
    expect([...clippedSurrogate(input, { clipHigh: 0.28 }).gradient]).toEqual(close([-0.625, 0]))
  })

  it("never looks at a token that is masked", () => {
    const mask = Float32Array.of(0, 1, 0)
    const broken = row([1, 1.1, 1], 2, { mask })
    broken.logProbs[0] = NaN
    broken.advantages[2] = Infinity
    const report = clippedSurrogate(broken)
    expect([...report.gradient]).toEqual(close([0, -2.2, 0]))
    expect(report.loss).toBeCloseTo(-2.2, 5)
  })

  it("is 0 where nothing counts", () => {
    const report = clippedSurrogate(row([1, 2], 1, { mask: new Float32Array(2) }))
    expect(report).toMatchObject({ loss: 0, ratio: 0, policyKl: 0, clipFraction: 0 })
    expect([...report.gradient]).toEqual([0, 0])
  })

  it("stays finite however far the policy has moved", () => {
    const far = row([1, 1], -1, { logProbs: Float32Array.of(-1e4, 0), oldLogProbs: Float32Array.of(0, -1e4) })
    const referenceLogProbs = Float32Array.of(0, -1e4)
    for (const klEstimator of ["k1", "k2", "k3"] as const) {
      const options = { klWeight: 0.1, klEstimator, clipDual: Number.POSITIVE_INFINITY }
      const { loss, gradient } = clippedSurrogate({ ...far, referenceLogProbs }, options)
      expect([loss, ...gradient].every(Number.isFinite)).toBe(true)
    }
  })

  it("weighs rows as the aggregation says", () => {
    // Losses of -1 a token; a row of one token and one of three, of which one is masked.
    const input: SurrogateInput = {
      ...row([1, 1, 1, 1], 1),
      advantages: Float32Array.of(4, 1, 1, 9),
      mask: Float32Array.of(1, 1, 1, 0),
      rows: Int32Array.of(1, 3),
    }
    const weights = (aggregation: NonNullable<SurrogateOptions["aggregation"]>) =>
      [...clippedSurrogate({ ...input, advantages: Float32Array.of(1, 1, 1, 9) }, { aggregation }).gradient].map(
        (g) => -g,
      )
    expect(weights("token-mean")).toEqual(close([1 / 3, 1 / 3, 1 / 3, 0]))
    expect(weights("sequence-mean-token-sum")).toEqual(close([1 / 2, 1 / 2, 1 / 2, 0]))
    expect(weights("sequence-mean-token-mean")).toEqual(close([1 / 2, 1 / 4, 1 / 4, 0]))
    expect(weights("sequence-mean-token-sum-norm")).toEqual(close([1 / 3, 1 / 3, 1 / 3, 0]))
    expect(clippedSurrogate(input, { aggregation: "sequence-mean-token-mean" }).loss).toBeCloseTo(-(4 + 1) / 2, 6)
  })

  it("takes one ratio for a whole row, its geometric mean, where it is told to", () => {
    const report = clippedSurrogate(row([2, 0.5], 1), { ratio: "sequence" })
    expect(report.loss).toBeCloseTo(-1, 6)
    expect([...report.gradient]).toEqual(close([-0.5, -0.5]))
  })

  it("has the gradient that its differences show", () => {
    const random = new Random(8)
    const tokens = 40
    // Ratios of a quarter step, which keeps them away from every bound.
    const floats = (next: () => number) => Float32Array.from({ length: tokens }, next)
    const input: SurrogateInput = {
      logProbs: floats(() => -2 + 0.25 * random.below(9) - 0.1),
      oldLogProbs: floats(() => -1),
      advantages: floats(() => random.below(5) - 2),
      mask: floats(() => random.below(4) && 1),
      rows: Int32Array.of(13, 0, 27),
      referenceLogProbs: floats(() => -2 * random.uniform()),
    }
    for (const klEstimator of ["k1", "k2", "k3"] as const) {
      const options = { klWeight: 0.3, klEstimator, aggregation: "sequence-mean-token-mean" } as const
      const { gradient } = clippedSurrogate(input, options)
      for (let token = 0; token < tokens; token++) {
        const step = 2 ** -8
        const at = (move: number) => {
          const logProbs = Float32Array.from(input.logProbs)
          logProbs[token]! += move
          return clippedSurrogate({ ...input, logProbs }, options).loss
        }
        expect((at(step) - at(-step)) / (2 * step)).toBeCloseTo(gradient[token]!, 4)
      }
    }
  })

  it.each<[string, Partial<SurrogateInput>, SurrogateOptions, RegExp]>([
    ["arrays of another length", { mask: new Float32Array(1) }, {}, /mask must be as long as logProbs \(2\)/],
    ["rows that do not sum up", { rows: Int32Array.of(1) }, {}, /summing to 2, not 1/],
    ["rows of negative length", { rows: Int32Array.of(3, -1) }, {}, /rows must hold the lengths/],
    ["a KL weight without a reference", {}, { klWeight: 1 }, /a klWeight needs referenceLogProbs/],
    [
      "an unknown aggregation",
      {},
      { aggregation: "sum" as "token-mean" },
      /aggregation is "sum"; give one of .*-norm"/,
    ],
    ["an unknown ratio", {}, { ratio: "row" as "token" }, /ratio is "row"/],
    ["a clip of NaN", {}, { clipLow: NaN }, /clipLow is NaN/],
  ])("refuses %s", (_, input, options, message) => {
    expect(() => clippedSurrogate(row([1, 1], 1, input), options)).toThrow(badArgument(message))
  })
})

const vectors = new URL("../../shared/vectors/gigpo.json", import.meta.url)
const absent = existsSync(vectors) ? "" : " (skipped: ../shared/vectors/gigpo.json is not here)"

describe.skipIf(absent)(`clippedSurrogate against the shared vectors${absent}`, () => {
  interface PolicyLossVectors {
    old_logp: number[][]
    new_logp: number[][]
    ref_logp: number[][]
    mask: number[][]
    advantage: number[][]
    clip_low: number
    clip_high: number
    clip_c: number
    ratio: number[][]
    token_loss_grad_wrt_new_logp: number[][]
    pg_loss: Record<string, number>
    kl: Record<"k1" | "k2" | "k3", Record<string, number>>
    total_token_mean_beta_0_01: number
    clipfrac: number
    clip_higher: { clip_low: number; clip_high: number; pg_loss_token_mean: number }
    gspo: { clip_low: number; clip_high: number; seq_ratio: number[]; pg_loss_seq_mean_token_mean: number }
  }
  const load = (): PolicyLossVectors => JSON.parse(readFileSync(vectors, "utf8")).policy_loss
  const flat = (values: readonly number[][]) => Float32Array.from(values.flat())

  function input(v: PolicyLossVectors): SurrogateInput {
    return {
      logProbs: flat(v.new_logp),
      oldLogProbs: flat(v.old_logp),
      referenceLogProbs: flat(v.ref_logp),
      advantages: flat(v.advantage),
      mask: flat(v.mask),
      rows: Int32Array.from(v.mask, (row) => row.length),
    }
  }
  const options = (v: PolicyLossVectors) => ({ clipLow: v.clip_low, clipHigh: v.clip_high, clipDual: v.clip_c })
  const aggregations = {
    "token-mean": "token-mean",
    "seq-mean-token-sum": "sequence-mean-token-sum",
    "seq-mean-token-mean": "sequence-mean-token-mean",
    "seq-mean-token-sum-norm": "sequence-mean-token-sum-norm",
  } as const
  const names = Object.keys(aggregations) as (keyof typeof aggregations)[]

  it("knows every aggregation and estimator of the vectors", () => {
    const v = load()
    expect(names.toSorted()).toEqual(Object.keys(v.pg_loss).toSorted())
    expect(Object.keys(v.kl)).toEqual(["k1", "k2", "k3"])
  })

  it.each(names)("gives the policy loss by %s", (name) => {
    const v = load()
    const aggregation = aggregations[name]
    expect(clippedSurrogate(input(v), { ...options(v), aggregation }).policyLoss).toBeCloseTo(v.pg_loss[name]!, 6)
  })

  it.each(names)("gives each KL estimate by %s", (name) => {
    const v = load()
    for (const klEstimator of ["k1", "k2", "k3"] as const) {
      const found = clippedSurrogate(input(v), { ...options(v), klEstimator, aggregation: aggregations[name] })
      expect(found.kl, klEstimator).toBeCloseTo(v.kl[klEstimator][name]!, 6)
    }
  })

  it("gives the gradient, the ratio, the share that was clipped and the total with a KL term", () => {
    const v = load()
    const found = clippedSurrogate(input(v), options(v))
    const active = v.mask.flat().reduce((a, b) => a + b)
    const wanted = v.token_loss_grad_wrt_new_logp.flat().map((g, i) => (g * v.mask.flat()[i]!) / active)
    for (const [i, g] of found.gradient.entries()) expect(g).toBeCloseTo(wanted[i]!, 6)
    const ratios = v.ratio.flat().filter((_, i) => v.mask.flat()[i])
    expect(found.ratio).toBeCloseTo(ratios.reduce((a, b) => a + b) / active, 5)
    // The vectors count clips of the ratio, not of the dual clip.
    expect(found.clipFraction).toBeCloseTo(v.clipfrac, 6)
    const total = clippedSurrogate(input(v), { ...options(v), klWeight: 0.01 })
    expect(total.loss).toBeCloseTo(v.total_token_mean_beta_0_01, 6)
  })

  it("clips higher", () => {
    const v = load()
    const { clip_low: clipLow, clip_high: clipHigh, pg_loss_token_mean: wanted } = v.clip_higher
    expect(clippedSurrogate(input(v), { clipLow, clipHigh, clipDual: v.clip_c }).policyLoss).toBeCloseTo(wanted, 6)
  })

  it("gives GSPO's loss and its ratio of each sequence", () => {
    const v = load()
    const { clip_low: clipLow, clip_high: clipHigh } = v.gspo
    const gspo = { clipLow, clipHigh, ratio: "sequence", aggregation: "sequence-mean-token-mean" } as const
    const found = clippedSurrogate(input(v), gspo)
    expect(found.policyLoss).toBeCloseTo(v.gspo.pg_loss_seq_mean_token_mean, 6)
    const counts = v.mask.map((row) => row.reduce((a, b) => a + b))
    const mean = v.gspo.seq_ratio.reduce((sum, r, i) => sum + r * counts[i]!, 0) / counts.reduce((a, b) => a + b)
    expect(found.ratio).toBeCloseTo(mean, 5)
  })
})

describe("groupAnchors", () => {
  const encoder = new TextEncoder()
  function toBytes(anchors: readonly string[]): { bytes: Uint8Array; offsets: Float64Array } {
    const parts = anchors.map((anchor) => encoder.encode(anchor))
    const offsets = new Float64Array(anchors.length + 1)
    for (const [i, part] of parts.entries()) offsets[i + 1] = offsets[i]! + part.length
    const bytes = new Uint8Array(offsets.at(-1)!)
    for (const [i, part] of parts.entries()) bytes.set(part, offsets[i]!)
    return { bytes, offsets }
  }

  /** The specification. */
  function groupByMap(tasks: ArrayLike<number | string>, anchors: readonly string[]): number[] {
    const ids = new Map<string, number>()
    return anchors.map((anchor, i) => {
      const key = JSON.stringify([tasks[i], anchor])
      if (!ids.has(key)) ids.set(key, ids.size)
      return ids.get(key)!
    })
  }

  function expectGroups(tasks: ArrayLike<number | string>, anchors: readonly string[]): void {
    const wanted = groupByMap(tasks, anchors)
    const count = wanted.reduce((most, group) => Math.max(most, group + 1), 0)
    for (const given of [anchors, toBytes(anchors)]) {
      const found = groupAnchors(tasks, given)
      expect([...found.groups]).toEqual(wanted)
      expect(found.count).toBe(count)
    }
  }

  it("numbers states in the order in which they first occur", () => {
    expectGroups([0, 0, 0, 0, 0], ["b", "a", "b", "c", "a"])
    expect([...groupAnchors([0, 0, 0], ["b", "a", "b"]).groups]).toEqual([0, 1, 0])
  })

  it("never joins states of different tasks, be their keys numbers or strings", () => {
    expectGroups([5, 7, 5, 7], ["a", "a", "a", "a"])
    expectGroups(["x", "y", "x", "z"], ["a", "a", "a", "a"])
    expectGroups(Int32Array.of(-1, 2 ** 31 - 1, -1, 0), ["a", "a", "a", "a"])
  })

  it("compares every byte: beginnings, ends, lengths, zeros, letters beyond ASCII", () => {
    const anchors = ["", "a", "ab", "a\0", "a\0\0", "\0", "é", "e\u0301", "日本", "日木", "🎲", "🎱", "x".repeat(200)]
    const all = [...anchors, `${"x".repeat(199)}y`, `y${"x".repeat(199)}`, "x".repeat(64), "x".repeat(65), ...anchors]
    expectGroups(new Int32Array(all.length), all)
  })

  it("groups nothing into nothing", () => {
    expectGroups([], [])
    expect(groupAnchors([], { bytes: new Uint8Array(0), offsets: Float64Array.of(0) }).count).toBe(0)
  })

  it("agrees with a Map on many states, in few tasks and in many", () => {
    const random = new Random(6)
    for (const tasks of [1, 7, 3000]) {
      const count = 20_000
      const keys = Int32Array.from({ length: count }, () => random.below(tasks))
      const anchors = Array.from({ length: count }, () => "#. _@$".repeat(random.below(6)) + random.below(40))
      expectGroups(keys, anchors)
    }
  })

  it("agrees with a Map where there is enough for several threads", () => {
    const random = new Random(7)
    const count = 3000
    const room = "#".repeat(5000)
    const anchors = Array.from({ length: count }, () => `${room}${random.below(200)}`)
    expectGroups(
      Int32Array.from({ length: count }, () => random.below(4)),
      anchors,
    )
  })

  it.each<[string, () => unknown, RegExp]>([
    ["as many tasks as anchors", () => groupAnchors([0], ["a", "b"]), /2 anchors need as many tasks, not 1/],
    [
      "one offset more than states",
      () => groupAnchors([0], { bytes: new Uint8Array(2), offsets: Float64Array.of(0) }),
      /1 states need 2 offsets, not 1/,
    ],
    [
      "offsets that do not decrease",
      () => groupAnchors([0, 0], { bytes: new Uint8Array(2), offsets: Float64Array.of(0, 2, 1) }),
      /offsets\[2\] is 1/,
    ],
    [
      "offsets within the bytes",
      () => groupAnchors([0], { bytes: new Uint8Array(2), offsets: Float64Array.of(0, 3) }),
      /offsets\[1\] is 3.*up to 2/,
    ],
    [
      "offsets that are whole",
      () => groupAnchors([0], { bytes: new Uint8Array(2), offsets: Float64Array.of(0, 0.5) }),
      /offsets\[1\] is 0\.5/,
    ],
    [
      "offsets that are numbers",
      () => groupAnchors([0], { bytes: new Uint8Array(2), offsets: Float64Array.of(NaN, 1) }),
      /offsets\[0\] is NaN/,
    ],
    [
      "offsets that are not negative",
      () => groupAnchors([0], { bytes: new Uint8Array(2), offsets: Float64Array.of(-1, 1) }),
      /offsets\[0\] is -1/,
    ],
  ])("wants %s", (_, call, message) => {
    expect(call).toThrow(badArgument(message))
  })
})
