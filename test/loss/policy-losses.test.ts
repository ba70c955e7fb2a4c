import { describe, expect, it } from "vitest"
import type { Aggregation, SequenceUnit } from "../../src/engine/engine.ts"
import { cispo } from "../../src/loss/cispo.ts"
import { clipCov } from "../../src/loss/clip-cov.ts"
import { composeLoss } from "../../src/loss/compose-loss.ts"
import { dppoKl, dppoTv } from "../../src/loss/dppo.ts"
import { dro } from "../../src/loss/dro.ts"
import { gmpo } from "../../src/loss/gmpo.ts"
import { holderPo } from "../../src/loss/holder-po.ts"
import { holderSchedule } from "../../src/loss/holder-schedule.ts"
import { klCov } from "../../src/loss/kl-cov.ts"
import { lossInput } from "../../src/loss/loss-input.ts"
import { opmdLoss } from "../../src/loss/opmd.ts"
import { reinforce } from "../../src/loss/reinforce.ts"
import { sapo } from "../../src/loss/sapo.ts"
import type { LossInput, TokenLoss } from "../../src/loss/token-loss.ts"
import { topr } from "../../src/loss/topr.ts"
import { scheduleValue } from "../../src/options/schedule.ts"
import { Random } from "../../src/util/random.ts"
import { badArgument } from "../kernels/bad-argument.ts"
import { close, exactInput, now, ofRatios, slopes } from "./inputs.ts"

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
    /** Product of the ratios of its sequence. */
    readonly sequence: number
    readonly covariance: number
    /** Whether it is among the 30 % of the largest covariances. */
    readonly covariesMost: boolean
  }
}

/** The same of a token where a definition is of sequences. */
type Member = Pick<Token, "A" | "l" | "width"> & { readonly w: number }

interface Case {
  readonly loss: TokenLoss
  /** Its definition, token by token. */
  readonly value?: (token: Token) => number
  /** Or of a sequence, whose mean advantage is A: the loss is their mean. */
  readonly sequence?: (members: readonly Member[], A: number) => number
  /** Parts of it are constants, so that its own differences are not its gradient. */
  readonly stops?: true
}

const hold = (x: number, low: number, high: number) => Math.min(Math.max(x, low), high)
const mean = (values: Iterable<number>) => {
  const all = [...values]
  return all.reduce((a, b) => a + b) / all.length
}
const heldBack = (A: number, l: number, low: number, high: number) =>
  A > 0 ? Math.min(l, hold(l, low, high)) : Math.max(l, hold(l, low, high))
/** The power mean as it is written, not in logarithms. */
const powerMean = (p: number, members: readonly { readonly l: number; readonly w: number }[]) => {
  const total = members.reduce((sum, { w }) => sum + w, 0)
  const sum = members.reduce((all, { l, w }) => all + w * (p === 0 ? l : Math.exp(l) ** p), 0)
  return p === 0 ? Math.exp(sum / total) : (sum / total) ** (1 / p)
}
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
  opmd: { loss: opmdLoss({ tau: 0.6 }), value: ({ A, logp }) => (-A * logp) / 1.6 },
  topr: {
    loss: topr(),
    value: ({ A, logp, fixed }) => (A > 0 ? -A * logp : -Math.min(fixed.sequence, 1) * A * logp),
    stops: true,
  },
  "topr of tokens": {
    loss: topr({ importanceSamplingLevel: "token" }),
    value: ({ A, logp, fixed }) => (A > 0 ? -A * logp : -Math.min(fixed.r, 1) * A * logp),
    stops: true,
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
  gmpo: {
    loss: gmpo({ clipLow: 0.2, clipHigh: 0.28 }),
    sequence: (members, A) => {
      const moved = members.map(({ l, width }) => heldBack(A, l, -0.2 * width, 0.28 * width))
      return -A * Math.exp(mean(moved)) * Math.exp(mean(members.map(({ w }) => Math.log(w))))
    },
  },
  ...Object.fromEntries(
    [2, 1, 0, -1.5].flatMap((p): [string, Case][] => [
      [
        `holder-po of sequences, p = ${p}`,
        {
          loss: holderPo({ p, clipLow: 0.03, clipHigh: 0.05 }),
          sequence: (members, A) => {
            const width = mean(members.map((member) => member.width))
            const moved = heldBack(
              A,
              Math.log(powerMean(p, members)),
              Math.log(1 - 0.03 * width),
              Math.log(1 + 0.05 * width),
            )
            return -A * Math.exp(moved) * mean(members.map(({ w }) => w))
          },
        },
      ],
      [
        `holder-po of tokens, p = ${p}`,
        {
          loss: holderPo({ p, variant: "token", clipLow: 0.2, clipHigh: 0.28 }),
          sequence: (members, A) => {
            const moved = members.map(({ l, w, width }) => ({
              l: heldBack(A, l, Math.log(1 - 0.2 * width), Math.log(1 + 0.28 * width)),
              w,
            }))
            return -A * powerMean(p, moved) * mean(members.map(({ w }) => w))
          },
        },
      ],
    ]),
  ),
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

/** The definition's loop: the loss by an aggregation, where constants are those of `fixed`. */
function defined(
  name: string,
  input: LossInput,
  aggregation: Aggregation,
  fixedLength: number,
  fixed = input.logProbs,
) {
  const { tokens, offsets, segmentOffsets, logProbs, oldLogProbs, advantages, weights, clipScale } = input
  const { value, sequence } = cases[name]!
  const segment = (t: number) => segmentOffsets.findLastIndex((start) => start <= t)
  const width = (t: number) => clipScale?.[segment(t)] ?? 1
  if (sequence)
    return mean(
      Array.from({ length: offsets.length - 1 }, (_, s) => {
        const members = Array.from({ length: offsets[s + 1]! - offsets[s]! }, (_, i) => {
          const t = offsets[s]! + i
          return { A: advantages[t]!, l: logProbs[t]! - oldLogProbs[t]!, w: weights?.[t] ?? 1, width: width(t) }
        })
        return sequence(members, mean(members.map(({ A }) => A)))
      }),
    )
  const [meanA, meanP] = [mean(advantages), mean(fixed)]
  const covariance = (t: number) => (advantages[t]! - meanA) * (fixed[t]! - meanP)
  const order = Array.from({ length: tokens }, (_, t) => t).sort((a, b) => covariance(b) - covariance(a))
  const most = new Set(order.slice(0, Math.floor(0.3 * tokens)))
  let [total, sequences] = [0, 0]
  for (let s = 0; s + 1 < offsets.length; s++, sequences++) {
    let sum = 0
    const ratios = Array.from(fixed.slice(offsets[s]!, offsets[s + 1]!), (logp, i) =>
      Math.exp(logp - oldLogProbs[offsets[s]! + i]!),
    )
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
          sequence: ratios.reduce((product, ratio) => product * ratio, 1),
          covariance: covariance(t),
          covariesMost: most.has(t),
        },
      }
      sum += (weights?.[t] ?? 1) * value!(token)
    }
    total += aggregation === "sequence-mean-token-mean" ? sum / (offsets[s + 1]! - offsets[s]!) : sum
  }
  if (aggregation === "token-sum") return total
  if (aggregation === "token-mean") return total / tokens
  return total / sequences / (aggregation === "sequence-mean-fixed-length" ? fixedLength : 1)
}

describe.each(names)("the loss %s", (name) => {
  const { loss, stops, sequence } = cases[name]!

  it("has its name, and no native form", () => {
    expect(loss.name).toBe(name.split(" ")[0])
    expect(loss.native).toBeUndefined()
  })

  it.each<[Aggregation, SequenceUnit]>([
    ["token-mean", "completion"],
    ["token-sum", "completion"],
    ["sequence-mean-token-sum", "conversation"],
    ["sequence-mean-token-mean", "conversation"],
    ["sequence-mean-token-mean", "completion"],
    ["sequence-mean-fixed-length", "conversation"],
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

  it("is finite for any distance of the policy", () => {
    const input = exactInput(6, "completion", true)
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

  it("is 0 for an empty batch", () => {
    const { loss: found, gradient, metrics } = loss.evaluate(lossInput([], { logProbs: new Float32Array(0) }, now))
    expect([Math.abs(found), gradient.length]).toEqual([0, 0])
    for (const value of Object.values(metrics!)) expect(Math.abs(value)).toBe(0)
  })

  it("has no gradient for tokens of weight 0", () => {
    const input = exactInput(7, "completion", true)
    const weights = Float64Array.from(input.weights!)
    weights[3] = 0
    expect(loss.evaluate({ ...input, weights }).gradient[3]).toBeCloseTo(0, 12)
    if (sequence) return // it has its own shares
    const shares = input.shares.slice()
    shares[3] = 0
    const { loss: found, gradient } = loss.evaluate({ ...input, shares })
    expect(gradient[3]).toBeCloseTo(0, 12)
    // Nor does it matter where it stands, but for a covariance, which is over all tokens, and the ratio of a sequence.
    if (name.endsWith("-cov") || name === "topr") return
    const logProbs = Float64Array.from(input.logProbs)
    logProbs[3]! -= 0.7
    expect(loss.evaluate({ ...input, shares, logProbs })).toMatchObject({ loss: found, gradient })
  })

  it("reports the change of the policy", () => {
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

  it("count ratios outside of the clip range for any sign (cispo), or those that are clipped (gmpo)", () => {
    // Widths of 0.2 and 0.28, and three times as much.
    expect(metric(cases.cispo!.loss, input, "clip-fraction")).toBe((3 + 1) / 8)
    expect(metric(cispo(), input, "clip-fraction")).toBe(0)
    // Logarithms of -0.69, 0, 0.41 and 0.92 against 0.28 from above, and -0.6 from below.
    expect(metric(cases.gmpo!.loss, input, "clip-fraction")).toBe((2 + 1) / 8)
    expect(metric(gmpo(), ofRatios([{ ratios: [0.1, 9], advantage: 0 }]), "clip-fraction")).toBe(0)
  })

  it("count masked tokens, and truncated ones among the others", () => {
    // p_old is e^-1: it moves by -0.18, 0, 0.18 and 0.55; the second has three times the threshold.
    const tv = dppoTv({ thresholdLow: 0.05, thresholdHigh: 0.3, truncate: 1.4 })
    expect(metric(tv, input, "masked-fraction")).toBe((1 + 1) / 8)
    expect(metric(tv, input, "ratio-truncated-fraction")).toBe((1 + 2) / 8)
    const kl = dppoKl({ thresholdLow: 0.1, thresholdHigh: 0.05, truncate: 2 })
    expect(metric(kl, input, "masked-fraction")).toBe((2 + 0) / 8)
    expect(metric(kl, input, "ratio-truncated-fraction")).toBe((0 + 1) / 8)
    // A probability that rounding has put above 1 is 1.
    expect(metric(kl, ofRatios([{ ratios: [Math.E * 1.00001], advantage: 1 }]), "masked-fraction")).toBe(1)
  })
})

describe("ratios", () => {
  it("are constant above e^20 and below e^-20", () => {
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
    expect(metrics!["policy/cov-clipped-fraction"]).toBeCloseTo(tokens.length / input.tokens, 12)
    return tokens
  }

  it("drops at most its share, at random by the key of the batch, reproducibly", () => {
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

  it("does not change its input or its random generator", () => {
    const weights = new Float64Array(far.tokens).fill(2)
    const input = { ...far, weights, random: new Random(9) }
    clipCov({ ...every, covarianceShare: 0.5 }).evaluate(input)
    expect(input.random.uint32()).toBe(new Random(9).uint32())
    expect(weights.every((weight) => weight === 2)).toBe(true)
  })
})

describe("klCov", () => {
  it("selects the first of equal covariances", () => {
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
  it("ignores the aggregation of the KL term", () => {
    const input = exactInput(8, "conversation", true)
    const by = (aggregation: Aggregation) => composeLoss(gmpo(), { aggregation }).evaluate(input)
    expect(by("token-sum")).toEqual(by("token-mean"))
  })

  it("is 0 for a sequence of weight 0, and rejects negative weights", () => {
    const weighted = (weight: number) =>
      ofRatios([{ ratios: [1, 1.1], advantage: 1, more: { weights: Float32Array.of(1, weight) } }])
    expect([...gmpo().evaluate(weighted(0)).gradient].map(Math.abs)).toEqual([0, 0])
    expect(() => gmpo().evaluate(weighted(-1))).toThrow(badArgument(/at least 0 for its mean, not -1/))
  })
})

describe("holder-po", () => {
  it("ignores the aggregation of the KL term", () => {
    const input = exactInput(8, "conversation", true)
    const by = (aggregation: Aggregation) => composeLoss(holderPo({ p: 2 }), { aggregation }).evaluate(input)
    expect(by("token-sum")).toEqual(by("token-mean"))
  })

  it("has the schedules of its authors", () => {
    const half = { iteration: 100, iterations: 1000 }
    const now = (...given: Parameters<typeof holderSchedule>) => scheduleValue(holderSchedule(...given), half)
    expect(now("linear_dec")).toBeCloseTo(1.2, 12)
    expect(now("sin", { over: 200 })).toBeCloseTo(0, 12)
    expect(now("cos", { over: 300 })).toBeCloseTo(2 * Math.cos(Math.PI / 3), 12)
    expect(now("quad", { over: 200, power: 3, lowest: 0, highest: 8 })).toBeCloseTo(1, 12)
    expect(now("cubic_dec", { over: 400 })).toBeCloseTo(2 * 0.5 ** 3, 12)
    expect(now("linear", { over: 50 })).toBe(2)
    expect(() => now("square" as "quad")).toThrow(badArgument(/no schedule "square"; use one of linear, sin, quad/))
  })

  it("converges to the geometric mean at p = 0 from both sides", () => {
    const input = exactInput(9, "completion", false)
    const { loss, gradient } = holderPo({ p: 0 }).evaluate(input)
    for (const p of [1e-5, -1e-5, 1e-7, -1e-7]) {
      const near = holderPo({ p }).evaluate(input)
      expect(near.loss).toBeCloseTo(loss, 4)
      expect([...near.gradient]).toEqual(close([...gradient], 4))
    }
  })

  it("approaches the largest ratio for large p, the smallest for p far below 0, and ignores weights of 0", () => {
    const input = (weights: number[]) =>
      ofRatios([{ ratios: [0.5, 1, 4], advantage: 1, more: { weights: Float32Array.from(weights) } }])
    const loss = (p: number, weights: number[]) => holderPo({ p, clipHigh: 9 }).evaluate(input(weights)).loss
    expect(loss(1000, [1, 1, 1])).toBeCloseTo(-4, 1)
    expect(loss(-1000, [1, 1, 1])).toBeCloseTo(-0.5, 2)
    expect(loss(1000, [1, 2, 0])).toBeCloseTo(-1, 2)
    expect(loss(-1000, [0, 1, 2])).toBeCloseTo(-1, 2)
    expect(Math.abs(loss(2, [0, 0, 0]))).toBe(0)
    expect(() => loss(1, [1, 1, -1])).toThrow(
      badArgument(/holder-po needs token weights of at least 0 for its mean, not -1/),
    )
  })

  it("has no lower bound if clipLow times its scale is 1 or more", () => {
    const input = ofRatios([{ ratios: [0.1], advantage: -1, more: { clipScale: 3 } }])
    expect(holderPo({ clipLow: 0.5 }).evaluate(input).gradient[0]).toBeCloseTo(0.1, 6)
  })

  it("reports the clipped tokens, all or none of a sequence", () => {
    const input = ofRatios([
      { ratios: [0.5, 1, 3], advantage: 1 },
      { ratios: [0.5, 1, 1.1], advantage: 1 },
      { ratios: [5, 5], advantage: 0 },
    ])
    expect(metric(holderPo(), input)).toBe(3 / 8)
    expect(metric(holderPo({ variant: "token" }), input)).toBe(1 / 8)
    function metric(loss: TokenLoss, of: LossInput) {
      return loss.evaluate(of).metrics!["policy/clip-fraction"]
    }
  })
})

describe("options", () => {
  it("accept schedules", () => {
    const input = ofRatios([{ ratios: [3], advantage: 1 }])
    const half = { ...input, progress: { iteration: 5, iterations: 10 } }
    expect(cispo({ clipHigh: { from: 0, to: 1 } }).evaluate(half).gradient[0]).toBeCloseTo(-1.5, 6)
    const falling = ofRatios([{ ratios: [0.5, 1.5], advantage: 1 }])
    expect(holderPo({ p: { from: 2, to: -2, over: 6 } }).evaluate(falling).loss).toBeCloseTo(-Math.sqrt(0.75), 6)
    const widening = clipCov({ clipHigh: { from: 0, to: 1 }, covarianceLow: 10 })
    expect(widening.evaluate(half).loss).toBeCloseTo(-1.5, 6)
  })

  it.each<[string, () => unknown, RegExp]>([
    ["cispo", () => cispo({ clipLow: 1.1 }), /cispo: clipLow must be a number from 0 to 1, not 1.1/],
    ["sapo", () => sapo({ temperaturePositive: 0 }), /temperaturePositive must be above 0, not 0/],
    ["dro", () => dro({ beta: -1 }), /beta must be at least 0, not -1/],
    ["klCov", () => klCov({ covarianceShare: 0 }), /covarianceShare must be above 0 and at most 1, not 0/],
    ["clipCov", () => clipCov({ covarianceShare: 2 }), /covarianceShare must be above 0 and at most 1, not 2/],
    ["holderPo", () => holderPo({ p: Number.POSITIVE_INFINITY }), /holderPo: p must be a finite number, not Infinity/],
    ["gmpo", () => gmpo({ clipLow: Number.NaN }), /clipLow must be a number, not NaN/],
    ["dppoTv", () => dppoTv({ truncate: 0 }), /dppoTv: truncate must be a number above 0, or Infinity/],
    ["dppoKl", () => dppoKl({ thresholdLow: -1 }), /dppoKl: thresholdLow must be at least 0, not -1/],
  ])("of %s are rejected where they have no meaning", (_, make, message) => {
    expect(make).toThrow(badArgument(message))
  })
})
