import { describe, expect, it } from "vitest"
import type { Aggregation, Unit } from "../../src/engine/engine.ts"
import { cispo } from "../../src/loss/cispo.ts"
import { clipCov } from "../../src/loss/clip-cov.ts"
import { composeLoss } from "../../src/loss/compose-loss.ts"
import { dppoKl, dppoTv } from "../../src/loss/dppo.ts"
import { dro } from "../../src/loss/dro.ts"
import { gmpo } from "../../src/loss/gmpo.ts"
import { klCov } from "../../src/loss/kl-cov.ts"
import { lossInput } from "../../src/loss/loss-input.ts"
import { reinforce } from "../../src/loss/reinforce.ts"
import { sapo } from "../../src/loss/sapo.ts"
import type { LossInput, TokenLoss } from "../../src/loss/token-loss.ts"
import { Random } from "../../src/random.ts"
import { badArgument } from "../kernels/bad-argument.ts"
import { now, ofRatios, randomRows } from "./inputs.ts"

/** What a definition says of one token; what is stopped is taken from `fixed`, the log-probabilities at which it is differentiated. */
interface Token {
  readonly A: number
  readonly logp: number
  readonly l: number
  readonly r: number
  readonly width: number
  readonly fixed: {
    readonly logp: number
    readonly old: number
    readonly r: number
    readonly covariance: number
    /** Whether it is among the 30 % of the largest covariances. */
    readonly covariesMost: boolean
  }
}

interface Case {
  readonly loss: TokenLoss
  /** Its definition, token by token; gmpo's is of sequences. */
  readonly value?: (token: Token) => number
  /** Parts of it are constants, so that its own differences are not its gradient. */
  readonly stops?: true
}

const hold = (x: number, low: number, high: number) => Math.min(Math.max(x, low), high)
const trust = { thresholdLow: 0.03, thresholdHigh: 0.05, truncate: 1.2 }
const masked = ({ A, width, fixed }: Token, D: number) => {
  const [p, q] = [Math.exp(fixed.logp), Math.exp(fixed.old)]
  return A > 0 ? p > q && D > trust.thresholdHigh * width : p < q && D > trust.thresholdLow * width
}

const cases: Record<string, Case> = {
  reinforce: { loss: reinforce(), value: ({ A, logp }) => -A * logp },
  cispo: {
    loss: cispo({ clipLow: 0.2, clipHigh: 0.28 }),
    value: ({ A, logp, width, fixed }) => -hold(fixed.r, 1 - 0.2 * width, 1 + 0.28 * width) * A * logp,
    stops: true,
  },
  sapo: {
    loss: sapo({ temperaturePositive: 0.8, temperatureNegative: 1.3 }),
    value: ({ A, r }) => {
      const tau = A > 0 ? 0.8 : 1.3
      return ((-4 / tau) * A) / (1 + Math.exp(-tau * (r - 1)))
    },
  },
  dro: { loss: dro({ beta: 0.6 }), value: ({ A, logp, l }) => -(A * logp - 0.3 * l * l) },
  "kl-cov": {
    loss: klCov({ covarianceShare: 0.3, penalty: 0.7 }),
    value: ({ A, l, r, fixed }) => -A * r + (fixed.covariesMost ? 0.7 * Math.abs(l) : 0),
  },
  "clip-cov": {
    loss: clipCov({ clipLow: 0.2, clipHigh: 0.28, covarianceShare: 1, covarianceLow: 0.05, covarianceHigh: 0.8 }),
    value: ({ A, r, width, fixed }) => {
      const clipped = -A * hold(r, 1 - 0.2 * width, 1 + 0.28 * width)
      const drops = fixed.covariance > 0.05 && fixed.covariance < 0.8 && clipped <= -A * r
      return drops ? 0 : Math.max(-A * r, clipped)
    },
  },
  gmpo: { loss: gmpo({ clipLow: 0.2, clipHigh: 0.28 }) },
  "dppo-tv": {
    loss: dppoTv(trust),
    value: (token) => {
      const { A, logp, fixed } = token
      const D = Math.abs(Math.exp(fixed.logp) - Math.exp(fixed.old))
      return masked(token, D) ? 0 : -A * Math.min(fixed.r, trust.truncate) * logp
    },
    stops: true,
  },
  "dppo-kl": {
    loss: dppoKl(trust),
    value: (token) => {
      const { A, logp, fixed } = token
      const [p, q] = [Math.exp(fixed.logp), Math.exp(fixed.old)]
      const D = q * Math.log(q / p) + (1 - q) * Math.log((1 - q + 1e-8) / (1 - p + 1e-8))
      return masked(token, D) ? 0 : -A * Math.min(fixed.r, trust.truncate) * logp
    },
    stops: true,
  },
}

const names = Object.keys(cases)

/** Exact columns, with weights, clip widths and advantages of tokens, or of spans; policies that have moved by less than e. */
function exactInput(seed: number, unit: Unit, ofTokens: boolean): LossInput {
  const random = new Random(seed)
  const { rows, statistics } = randomRows(random)
  for (const { spans } of rows)
    for (const span of spans) {
      Object.assign(span, {
        weights: Float32Array.from({ length: span.length }, () => 0.1 + 2 * random.uniform()),
        clipScale: 0.5 + random.uniform(),
      })
      if (ofTokens)
        Object.assign(span, { advantage: Float32Array.from({ length: span.length }, () => random.below(5) - 2) })
    }
  const input = lossInput(rows, statistics, { ...now, unit })
  const shifts = [0.01, 0.1, 0.3, 0.9, -0.1, -0.3, -0.9]
  const oldLogProbs = Float64Array.from(input.oldLogProbs, (value) => value - 0.2)
  const logProbs = oldLogProbs.map((value) =>
    Math.min(value + shifts[random.below(shifts.length)]! + 0.05 * random.uniform(), -0.01),
  )
  return { ...input, oldLogProbs, logProbs }
}

/** The definition's loop: the loss by an aggregation, where constants are those of `fixed`. */
function defined(
  name: string,
  input: LossInput,
  aggregation: Aggregation,
  fixedLength: number,
  fixed = input.logProbs,
) {
  const { tokens, offsets, spanOffsets, logProbs, oldLogProbs, advantages, weights, clipScale } = input
  const { value } = cases[name]!
  const span = (t: number) => spanOffsets.findLastIndex((start) => start <= t)
  const width = (t: number) => clipScale?.[span(t)] ?? 1
  if (value === undefined) {
    const ofSequences = Array.from({ length: offsets.length - 1 }, (_, s) => {
      const at = Array.from({ length: offsets[s + 1]! - offsets[s]! }, (_, i) => offsets[s]! + i)
      const mean = (of: (t: number) => number) => at.reduce((sum, t) => sum + of(t), 0) / at.length
      const A = mean((t) => advantages[t]!)
      const m = (t: number) => {
        const l = logProbs[t]! - oldLogProbs[t]!
        const held = hold(l, -0.2 * width(t), 0.28 * width(t))
        return A > 0 ? Math.min(l, held) : Math.max(l, held)
      }
      return -A * Math.exp(mean(m)) * Math.exp(mean((t) => Math.log(weights?.[t] ?? 1)))
    })
    return ofSequences.reduce((a, b) => a + b) / ofSequences.length
  }
  const mean = (column: Iterable<number>) => [...column].reduce((a, b) => a + b) / tokens
  const [meanA, meanP] = [mean(advantages), mean(fixed)]
  const covariance = (t: number) => (advantages[t]! - meanA) * (fixed[t]! - meanP)
  const order = Array.from({ length: tokens }, (_, t) => t).sort((a, b) => covariance(b) - covariance(a))
  const most = new Set(order.slice(0, Math.floor(0.3 * tokens)))
  let [total, sequences] = [0, 0]
  for (let s = 0; s + 1 < offsets.length; s++, sequences++) {
    let sum = 0
    for (let t = offsets[s]!; t < offsets[s + 1]!; t++) {
      const l = logProbs[t]! - oldLogProbs[t]!
      const old = oldLogProbs[t]!
      const token: Token = {
        A: advantages[t]!,
        logp: logProbs[t]!,
        l,
        r: Math.exp(l),
        width: width(t),
        fixed: {
          logp: fixed[t]!,
          old,
          r: Math.exp(fixed[t]! - old),
          covariance: covariance(t),
          covariesMost: most.has(t),
        },
      }
      sum += (weights?.[t] ?? 1) * value(token)
    }
    total += aggregation === "sequence-mean-token-mean" ? sum / (offsets[s + 1]! - offsets[s]!) : sum
  }
  if (aggregation === "token-sum") return total
  if (aggregation === "token-mean") return total / tokens
  return total / sequences / (aggregation === "sequence-mean-fixed-length" ? fixedLength : 1)
}

/** Central differences by each token's log-probability. */
function slopes(input: LossInput, of: (input: LossInput) => number): number[] {
  const step = 1e-5
  return Array.from(input.logProbs, (_, t) => {
    const at = (move: number) => {
      const logProbs = Float64Array.from(input.logProbs)
      logProbs[t]! += move
      return of({ ...input, logProbs })
    }
    return (at(step) - at(-step)) / (2 * step)
  })
}

const close = (values: readonly number[], digits: number) => values.map((value) => expect.closeTo(value, digits))

describe.each(names)("the loss %s", (name) => {
  const { loss, stops } = cases[name]!

  it("goes by that name, and has no native form", () => {
    expect(loss.name).toBe(name)
    expect(loss.native).toBeUndefined()
  })

  it.each<[Aggregation, Unit]>([
    ["token-mean", "span"],
    ["token-sum", "span"],
    ["sequence-mean-token-sum", "row"],
    ["sequence-mean-token-mean", "row"],
    ["sequence-mean-token-mean", "span"],
    ["sequence-mean-fixed-length", "row"],
  ])("is its definition, and its gradient what differences show, by %s of a %s", (aggregation, unit) => {
    const fixedLength = 16
    const whole = composeLoss(loss, {
      aggregation,
      ...(aggregation === "sequence-mean-fixed-length" && { fixedLength }),
    })
    for (const ofTokens of [false, true]) {
      const input = exactInput(5, unit, ofTokens)
      const { loss: found, gradient, metrics } = whole.evaluate(input)
      const definition = (moved: LossInput) => defined(name, moved, aggregation, fixedLength, input.logProbs)
      expect(found).toBeCloseTo(definition(input), 10)
      expect(gradient.some((value) => value !== 0)).toBe(true)
      // Whatever a loss may do to a token, it does here to some and not to all.
      for (const [metric, value] of Object.entries(metrics!))
        if (metric.endsWith("fraction")) expect(Math.abs(value - 0.5)).toBeLessThan(0.5)
      expect([...gradient]).toEqual(close(slopes(input, definition), 5))
      if (!stops)
        expect([...gradient]).toEqual(
          close(
            slopes(input, (moved) => whole.evaluate(moved).loss),
            5,
          ),
        )
    }
  })

  it("is finite however far the policy has moved", () => {
    const input = exactInput(6, "span", true)
    const far = [-1e4, 1e4, -21, 21, 0]
    for (const [moved, kept] of [
      ["logProbs", "oldLogProbs"],
      ["oldLogProbs", "logProbs"],
    ] as const) {
      const column = input[kept].map((value, t) => value + far[t % far.length]!)
      for (const oneWay of [-1e4, 1e4, undefined]) {
        const values = oneWay === undefined ? column : input[kept].map((value) => value + oneWay)
        const { loss: found, gradient, metrics } = loss.evaluate({ ...input, [moved]: values })
        const numbers = [found, ...gradient, ...Object.values(metrics!)]
        expect(numbers.every(Number.isFinite)).toBe(true)
      }
    }
  })

  it("is 0 where there is nothing", () => {
    const { loss: found, gradient, metrics } = loss.evaluate(lossInput([], [], now))
    expect([Math.abs(found), gradient.length]).toEqual([0, 0])
    for (const value of Object.values(metrics!)) expect(Math.abs(value)).toBe(0)
  })

  it("does not pull at a token that weighs nothing", () => {
    const input = exactInput(7, "span", true)
    const weights = Float64Array.from(input.weights!)
    weights[3] = 0
    expect(loss.evaluate({ ...input, weights }).gradient[3]).toBeCloseTo(0, 12)
    if (name === "gmpo") return // it has its own shares
    const shares = input.shares.slice()
    shares[3] = 0
    const { loss: found, gradient } = loss.evaluate({ ...input, shares })
    expect(gradient[3]).toBeCloseTo(0, 12)
    // Nor does it matter where it stands, but for a covariance, which is over all tokens.
    if (name.endsWith("-cov")) return
    const logProbs = Float64Array.from(input.logProbs)
    logProbs[3]! -= 0.7
    expect(loss.evaluate({ ...input, shares, logProbs })).toMatchObject({ loss: found, gradient })
  })

  it("reports how far the policy has moved", () => {
    const input = ofRatios([{ ratios: [0.5, 1, 1.5], advantage: 1 }])
    expect(loss.evaluate(input).metrics).toMatchObject({
      "policy/kl": expect.closeTo(-Math.log(0.75) / 3, 6),
      "policy/ratio": expect.closeTo(1, 6),
    })
  })
})

describe("metrics", () => {
  const metric = (loss: TokenLoss, input: LossInput, name: string) => loss.evaluate(input).metrics![`policy/${name}`]
  const input = ofRatios([
    { ratios: [0.5, 1, 1.5, 2.5], advantage: 1 },
    { ratios: [0.5, 1, 1.5, 2.5], advantage: -1, more: { clipScale: 3 } },
  ])

  it("count the ratios outside of a clip, whatever the sign (cispo), or those that it holds (gmpo)", () => {
    // Widths of 0.2 and 0.28, and three times as much.
    expect(metric(cases.cispo!.loss, input, "clip-fraction")).toBe((3 + 1) / 8)
    expect(metric(cispo(), input, "clip-fraction")).toBe(0)
    // Logarithms of -0.69, 0, 0.41 and 0.92 against 0.28 from above, and -0.6 from below.
    expect(metric(cases.gmpo!.loss, input, "clip-fraction")).toBe((2 + 1) / 8)
    expect(metric(gmpo(), ofRatios([{ ratios: [0.1, 9], advantage: 0 }]), "clip-fraction")).toBe(0)
  })

  it("count what a divergence masks, and what of the rest is truncated", () => {
    // p_old is e^-1: it moves by -0.18, 0, 0.18 and 0.55; the second has three times the threshold.
    const tv = dppoTv({ thresholdLow: 0.05, thresholdHigh: 0.3, truncate: 1.4 })
    expect(metric(tv, input, "masked-fraction")).toBe((1 + 1) / 8)
    expect(metric(tv, input, "truncated-fraction")).toBe((1 + 2) / 8)
    const kl = dppoKl({ thresholdLow: 0.1, thresholdHigh: 0.05, truncate: 2 })
    expect(metric(kl, input, "masked-fraction")).toBe((2 + 0) / 8)
    expect(metric(kl, input, "truncated-fraction")).toBe((0 + 1) / 8)
    // A probability that rounding has put above 1 is 1.
    expect(metric(kl, ofRatios([{ ratios: [Math.E * 1.00001], advantage: 1 }]), "masked-fraction")).toBe(1)
  })
})

describe("ratios", () => {
  it("are constant from e^20 up and from e^-20 down", () => {
    const input = ofRatios([{ ratios: [1, 1, 1, 1], advantage: -1 }])
    input.logProbs.set([-22, 18.9, 19.1, 30])
    const [far, near, beyond, further] = klCov({ penalty: 0 }).evaluate(input).gradient
    expect([far, beyond, further]).toEqual([0, 0, 0])
    expect(near! / (Math.exp(19.9) / 4)).toBeCloseTo(1, 4)
    const one = (logProb: number) => {
      const lone = ofRatios([{ ratios: [1], advantage: -1 }])
      lone.logProbs.set([logProb])
      return gmpo().evaluate(lone).gradient[0]
    }
    expect(one(19.1)).toBe(0)
    expect(one(18.9)! / Math.exp(19.9)).toBeCloseTo(1, 4)
  })
})

describe("clipCov", () => {
  const random = new Random(3)
  const far = ofRatios(
    Array.from({ length: 20 }, (_, i) => ({
      ratios: Array.from({ length: 10 }, () => 0.5 + random.uniform()),
      advantage: i % 2 === 0 ? 4 : -4,
    })),
  )
  const every = { clipLow: 1, clipHigh: 1, covarianceLow: -1e9, covarianceHigh: 1e9 }
  const dropped = (share: number, input = far) => {
    const { gradient, metrics } = clipCov({ ...every, covarianceShare: share }).evaluate(input)
    const tokens = [...gradient.keys()].filter((t) => gradient[t] === 0)
    expect(metrics!["policy/dropped-fraction"]).toBeCloseTo(tokens.length / input.tokens, 12)
    return tokens
  }

  it("drops no more than its share, at random by the key of the batch, the same each time", () => {
    expect(dropped(0.1)).toHaveLength(20)
    expect(dropped(0.109)).toHaveLength(21)
    expect(dropped(1e-6)).toHaveLength(1)
    expect(dropped(0.1)).toEqual(dropped(0.1))
    expect(dropped(0.1, { ...far, random: new Random(8) })).not.toEqual(dropped(0.1))
    const covered = new Set(
      Array.from({ length: 60 }, (_, key) => dropped(0.1, { ...far, random: new Random(key) })).flat(),
    )
    expect(covered.size).toBeGreaterThan(190)
  })

  it("does not touch its input's random numbers, nor its weights", () => {
    const weights = new Float64Array(far.tokens).fill(2)
    const input = { ...far, weights, random: new Random(9) }
    clipCov({ ...every, covarianceShare: 0.5 }).evaluate(input)
    expect(input.random.uint32()).toBe(new Random(9).uint32())
    expect(weights.every((weight) => weight === 2)).toBe(true)
  })
})

describe("klCov", () => {
  it("takes the first of equal covariances", () => {
    const input = ofRatios([{ ratios: [2, 2, 2, 2], advantage: 0 }])
    const { gradient } = klCov({ covarianceShare: 0.5 }).evaluate(input)
    expect([...gradient]).toEqual([0.25, 0.25, 0, 0])
    // So too where the sum of equal advantages rounds.
    const third = ofRatios([{ ratios: [2, 4, 8, 16, 2, 4, 8], advantage: 0.1 }])
    const held = klCov({ covarianceShare: 3 / 7, penalty: 7e6 }).evaluate(third).gradient
    expect([...held].map((value) => value > 0)).toEqual([true, true, true, false, false, false, false])
  })
})

describe("gmpo", () => {
  it("ignores the aggregation that a KL term is given", () => {
    const input = exactInput(8, "row", true)
    const by = (aggregation: Aggregation) => composeLoss(gmpo(), { aggregation }).evaluate(input)
    expect(by("token-sum")).toEqual(by("token-mean"))
  })

  it("is 0 for a sequence with a weight of 0, and refuses one below", () => {
    const weighted = (weight: number) =>
      ofRatios([{ ratios: [1, 1.1], advantage: 1, more: { weights: Float32Array.of(1, weight) } }])
    expect([...gmpo().evaluate(weighted(0)).gradient].map(Math.abs)).toEqual([0, 0])
    expect(() => gmpo().evaluate(weighted(-1))).toThrow(badArgument(/one is -1; give none below 0/))
  })
})

describe("options", () => {
  it("may follow schedules", () => {
    const input = ofRatios([{ ratios: [3], advantage: 1 }])
    const half = { ...input, moment: { iteration: 5, iterations: 10 } }
    expect(cispo({ clipHigh: { from: 0, to: 1 } }).evaluate(half).gradient[0]).toBeCloseTo(-1.5, 6)
    const widening = clipCov({ clipHigh: { from: 0, to: 1 }, covarianceLow: 10 })
    expect(widening.evaluate(half).loss).toBeCloseTo(-1.5, 6)
  })

  it.each<[string, () => unknown, RegExp]>([
    ["cispo", () => cispo({ clipLow: 1.1 }), /cispo: clipLow must be a number from 0 to 1, not 1.1/],
    ["sapo", () => sapo({ temperaturePositive: 0 }), /temperaturePositive must be above 0, not 0/],
    ["dro", () => dro({ beta: -1 }), /beta must be at least 0, not -1/],
    ["klCov", () => klCov({ covarianceShare: 0 }), /covarianceShare must be above 0 and at most 1, not 0/],
    ["clipCov", () => clipCov({ covarianceShare: 2 }), /covarianceShare must be above 0 and at most 1, not 2/],
    ["gmpo", () => gmpo({ clipLow: Number.NaN }), /clipLow must be a number, not NaN/],
    ["dppoTv", () => dppoTv({ truncate: 0 }), /dppoTv: truncate must be a number above 0, or Infinity/],
    ["dppoKl", () => dppoKl({ thresholdLow: -1 }), /dppoKl: thresholdLow must be at least 0, not -1/],
  ])("of %s are refused where they have no meaning", (_, make, message) => {
    expect(make).toThrow(badArgument(message))
  })
})
