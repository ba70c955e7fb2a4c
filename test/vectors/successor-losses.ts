import { cispo } from "../../src/loss/cispo.ts"
import { clippedSurrogate } from "../../src/loss/clipped-surrogate.ts"
import { composeLoss } from "../../src/loss/compose-loss.ts"
import { gmpo } from "../../src/loss/gmpo.ts"
import { gspo } from "../../src/loss/gspo.ts"
import { holderPo } from "../../src/loss/holder-po.ts"
import { type HolderScheduleName, holderSchedule } from "../../src/loss/holder-schedule.ts"
import { klCov } from "../../src/loss/kl-cov.ts"
import { sapo } from "../../src/loss/sapo.ts"
import type { LossInput, TokenLoss } from "../../src/loss/token-loss.ts"
import { scheduleValue } from "../../src/options/schedule.ts"
import { aggregationOf, lossInputOf, tableOf } from "./loss-input.ts"
import { type Results, read, type Topic, type Vector } from "./topic.ts"

// Losses on one small table, each by its name: what every token loses, and value and gradient by aggregation, or of sequences alone.

type Make = (params: Vector["params"]) => TokenLoss

const clip = (params: Vector["params"]) => ({
  clipLow: read<number>(params, "clip_low"),
  clipHigh: read<number>(params, "clip_high"),
})

/** Losses of tokens. */
const ofTokens: Readonly<Record<string, Make>> = {
  ppo_clip_dual: (params) => clippedSurrogate({ ...clip(params), clipDual: read(params, "dual_clip_c") }),
  ppo_clip_no_dual: (params) => clippedSurrogate({ ...clip(params), clipDual: Number.POSITIVE_INFINITY }),
  sapo: (params) => {
    const [temperaturePositive, temperatureNegative] = read<readonly [number, number]>(params, "sapo_tau")
    return sapo({ temperaturePositive, temperatureNegative })
  },
  cispo: (params) => cispo(clip(params)),
  kl_cov: (params) => klCov({ covarianceShare: read(params, "klcov_ratio"), penalty: read(params, "klcov_coef") }),
}

/** Losses of sequences, by the name before "_clip"; what follows are the two widths of the clip. */
const ofSequences: Readonly<Record<string, Make>> = {
  gspo: (params) => gspo(clip(params)),
  gmpo: (params) => gmpo(clip(params)),
}

export const losses: Topic = (vector) => {
  const { inputs, expected } = vector
  const given = { ...vector, inputs: { ...inputs, advantage: read(inputs, "advantage_per_sequence") } }
  return Object.fromEntries(Object.keys(expected).map((name) => [name, lossNamed(name, given)]))
}

/** Nothing for a loss that is not known: its numbers then differ. */
function lossNamed(name: string, vector: Vector): Results | undefined {
  const { params } = vector
  if (Object.hasOwn(ofTokens, name)) return byAggregation(ofTokens[name]!(params), vector)
  const [, variant, p] = /^holder_(seq|token)_p=(-?[\d.]+)$/.exec(name) ?? []
  if (variant !== undefined) {
    const own = holderPo({ ...clip(params), p: Number(p), variant: variant === "seq" ? "sequence" : "token" })
    return { ...evaluated(own, vector, "seq-mean-token-mean"), M_selected: meansOf(own, lossInputOf(vector)) }
  }
  const [, loss, low, high] = /^(\w+?)_clip([\d.]+)\/([\d.]+)$/.exec(name) ?? []
  if (loss === undefined || !Object.hasOwn(ofSequences, loss)) return undefined
  const own = ofSequences[loss]!({ ...params, clip_low: Number(low), clip_high: Number(high) })
  return evaluated(own, vector, "seq-mean-token-mean")
}

function byAggregation(loss: TokenLoss, vector: Vector): Results {
  const names = ["token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"]
  return {
    token_loss: tableOf(vector, tokenLosses(loss, lossInputOf(vector))),
    by_aggregation: Object.fromEntries(names.map((name) => [name, evaluated(loss, vector, name)])),
  }
}

function evaluated(policy: TokenLoss, vector: Vector, name: string): Results {
  // A fixed number divides the sum over all sequences here, which have no mean.
  const isFixed = name === "seq-mean-token-sum-norm"
  const divisor = isFixed ? read<number>(vector.params, "seq_mean_token_sum_norm_divisor") : 1
  const terms = aggregationOf({ ...vector, params: { aggregation: isFixed ? "token-sum" : name } })
  const { loss, gradient } = composeLoss(policy, terms).evaluate(lossInputOf(vector))
  return {
    loss: loss / divisor,
    dlogp: tableOf(
      vector,
      Float64Array.from(gradient, (slope) => slope / divisor),
    ),
  }
}

/** A loss is a sum over tokens by their shares: what it is where one token has all. */
function tokenLosses(loss: TokenLoss, input: LossInput): Float64Array {
  return Float64Array.from(input.shares, (_, token) => {
    const shares = new Float64Array(input.tokens)
    shares[token] = 1
    return loss.evaluate({ ...input, shares }).loss
  })
}

/** e^L of every sequence: what the mean over sequences is where one of them alone has an advantage A, -A e^L / n. */
function meansOf(loss: TokenLoss, input: LossInput): number[] {
  const { offsets, advantages } = input
  const sequences = offsets.length - 1
  return Array.from({ length: sequences }, (_, s) => {
    const own = advantages.map((advantage, t) => (t >= offsets[s]! && t < offsets[s + 1]! ? advantage : 0))
    return (-sequences * loss.evaluate({ ...input, advantages: own }).loss) / advantages[offsets[s]!]!
  })
}

/** p of HölderPO at iterations, by the authors' names of schedules. */
export const holderSchedules: Topic = ({ params, inputs, expected }) => {
  const [lowest, highest, over] = ["p_min", "p_max", "steps"].map((name) => read<number>(params, name))
  const power = params.power === undefined ? {} : { power: read<number>(params, "power") }
  const valuesOf = (name: string) => {
    const ramp = holderSchedule(name as HolderScheduleName, { lowest, highest, over, ...power })
    return read<number[]>(inputs, "step").map((iteration) => scheduleValue(ramp, { iteration, iterations: over! }))
  }
  return Object.fromEntries(Object.keys(expected).map((name) => [name, valuesOf(name)]))
}
