// GiGPO with a separate normalization of each level, or without a level: the paper's ablations. For `training.estimator: { use: … }`.

import { normalizer } from "../../modules/entries/advantages.js"
import { fields, gigpo } from "../../modules/entries/index.js"

const norm = (about) => fields.oneOf("mean", ["mean", "std", "none"], about)

export const options = {
  episode: norm("Comparison of episodes: by the mean, by mean and standard deviation, or none."),
  step: norm("Comparison of steps, with the same values."),
}

export default function levels({ episode, step }) {
  const outcome = episode === "none" ? { episode: (batch) => new Float64Array(batch.length) } : {}
  const steps = step === "none" ? { omega: 0 } : { normalize: normalizer({ std: step === "std" ? "sample" : "none" }) }
  return gigpo({
    normalization: episode === "std" ? "sample" : "none",
    invalidActionPenalty: 0.1,
    ...outcome,
    ...steps,
  })
}
