import { cispo } from "../../src/loss/cispo.ts"
import { clipCov } from "../../src/loss/clip-cov.ts"
import { composeLoss } from "../../src/loss/compose-loss.ts"
import { dppoKl, dppoTv } from "../../src/loss/dppo.ts"
import { dro } from "../../src/loss/dro.ts"
import { gmpo } from "../../src/loss/gmpo.ts"
import { importanceWeights } from "../../src/loss/importance-weights.ts"
import { klCov } from "../../src/loss/kl-cov.ts"
import { mismatchMetrics } from "../../src/loss/mismatch.ts"
import { reinforce } from "../../src/loss/reinforce.ts"
import { sapo } from "../../src/loss/sapo.ts"
import type { TokenLoss } from "../../src/loss/token-loss.ts"
import { aggregationOf, lossInputOf, tableOf } from "./loss-input.ts"
import { read, type Topic, type Vector } from "./topic.ts"

// The policy losses beside the clipped surrogate, and what corrects for and reports a sampler that is not the trainer.

type Params = Vector["params"]

const number = (params: Params, name: string) => read<number>(params, name)

const clip = (params: Params) => ({ clipLow: number(params, "clip_low"), clipHigh: number(params, "clip_high") })

const trustRegion = (params: Params) => ({
  thresholdLow: number(params, "threshold_low"),
  thresholdHigh: number(params, "threshold_high"),
  truncate: number(params, "truncate"),
})

export const lossTopics: Readonly<Record<string, Topic>> = {
  sapo: lossTopic((params) =>
    sapo({
      temperaturePositive: number(params, "tau_positive"),
      temperatureNegative: number(params, "tau_negative"),
    }),
  ),
  policy_gradient: lossTopic(reinforce),
  cispo: lossTopic((params) => cispo(clip(params))),
  dro: lossTopic((params) => dro({ beta: number(params, "beta") })),
  kl_cov: lossTopic((params) =>
    klCov({ covarianceShare: number(params, "ratio"), penalty: number(params, "coefficient") }),
  ),
  clip_cov: lossTopic((params) =>
    clipCov({
      ...clip(params),
      covarianceShare: number(params, "ratio"),
      covarianceLow: number(params, "low"),
      covarianceHigh: number(params, "high"),
    }),
  ),
  gmpo: lossTopic((params) => gmpo(clip(params))),
  dppo_tv: lossTopic((params) => dppoTv(trustRegion(params))),
  dppo_kl: lossTopic((params) => dppoKl(trustRegion(params))),

  importance_weights(vector) {
    const { params } = vector
    const { trainer, sampler, offsets } = mismatched(vector)
    const [dropBelow, dropAbove] = (params.drop_outside as readonly number[] | undefined) ?? []
    const weights = importanceWeights(trainer, sampler, offsets, {
      level: read<"token" | "sequence">(params, "level"),
      truncate: (params.truncate as number | undefined) ?? Number.POSITIVE_INFINITY,
      dropBelow,
      dropAbove,
      normalize: read<boolean>(params, "normalize"),
    })
    return { weight: tableOf(vector, weights) }
  },

  mismatch(vector) {
    const { trainer, sampler, offsets } = mismatched(vector)
    const found = mismatchMetrics(trainer, sampler, offsets)
    return Object.fromEntries(Object.entries(mismatchNames).map(([name, metric]) => [name, found[metric]]))
  },
}

const mismatchNames = {
  kl: "mismatch/kl",
  k3_kl: "mismatch/k3",
  chi2_token: "mismatch/chi2-token",
  chi2_seq: "mismatch/chi2-sequence",
  training_ppl: "mismatch/training-perplexity",
  training_log_ppl: "mismatch/training-log-perplexity",
  rollout_ppl: "mismatch/rollout-perplexity",
  rollout_log_ppl: "mismatch/rollout-log-perplexity",
  ppl_ratio: "mismatch/perplexity-ratio",
  log_ppl_diff: "mismatch/log-perplexity-difference",
  log_ppl_abs_diff: "mismatch/log-perplexity-absolute-difference",
  log_ppl_diff_max: "mismatch/log-perplexity-difference-max",
  log_ppl_diff_min: "mismatch/log-perplexity-difference-min",
}

function lossTopic(make: (params: Params) => TokenLoss): Topic {
  return (vector) => {
    const { loss, gradient, metrics } = composeLoss(make(vector.params), aggregationOf(vector)).evaluate(
      lossInputOf(vector),
    )
    return {
      loss,
      dlogp: tableOf(vector, gradient),
      kl: metrics?.["policy/kl"],
      clip_fraction: metrics?.["policy/clip-fraction"],
      dropped_fraction: metrics?.["policy/cov-clipped-fraction"],
      masked_fraction: metrics?.["policy/masked-fraction"],
      truncated_fraction: metrics?.["policy/ratio-truncated-fraction"],
    }
  }
}

function mismatched(vector: Vector) {
  const { trainer_logp: logp, sampler_logp: old_logp, mask } = vector.inputs
  const { logProbs, oldLogProbs, offsets } = lossInputOf({ ...vector, inputs: { mask, logp, old_logp } })
  return { trainer: logProbs, sampler: oldLogProbs, offsets }
}
