// GiGPO that learns only from some steps: experiments on which credit is harmful. For `training.estimator: { use: … }`.

import { wrapEstimator } from "../../modules/entries/advantages.js"
import { fields, gigpo } from "../../modules/entries/index.js"

export const options = {
  learn: fields.oneOf(
    "all",
    ["all", "readable", "no unreadable success", "better", "worse", "shuffled"],
    "Steps that are learned from.",
  ),
}

const rules = {
  all: (advantage) => advantage,
  readable: (advantage, valid) => (valid ? advantage : undefined),
  "no unreadable success": (advantage, valid) => (valid ? advantage : Math.min(advantage, 0)),
  better: (advantage) => Math.max(advantage, 0),
  worse: (advantage) => Math.min(advantage, 0),
  shuffled: (advantage) => advantage, // the same advantages at other steps: the effect of noise alone
}

export default function rows({ learn }) {
  return wrapEstimator(gigpo({ normalization: "none", invalidActionPenalty: 0.1 }), {
    name: `gigpo, ${learn}`,
    change(credit, batch, { random }) {
      const advantages =
        learn === "shuffled" ? Float64Array.from(random.shuffled(Array.from(credit.advantages))) : credit.advantages
      const kept = advantages.map((advantage, step) => rules[learn](advantage, batch.valid[step] === 1) ?? Number.NaN)
      const skip = Uint8Array.from(kept, Number.isNaN)
      return { ...credit, advantages: kept.map((advantage) => (Number.isNaN(advantage) ? 0 : advantage)), skip }
    },
  })
}
