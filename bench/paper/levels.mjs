// GiGPO with each of its levels as one chooses: the paper's ablations. As `training.estimator: { use: … }`.

import { normalizer } from "../../modules/entries/advantages.js"
import { fields, gigpo } from "../../modules/entries/index.js"

const norm = (about) => fields.oneOf("mean", ["mean", "std", "none"], about)

export const options = {
  episode: norm("What episodes are compared by: their mean, mean and deviation, or nothing at all."),
  step: norm("The same for steps."),
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
