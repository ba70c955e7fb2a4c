// What is compared: settings of training that stand beside a world's.

const variant = (name, set) => ({ name, set })
const rate = (learningRate) => ({ "training.optimizer.learningRate": learningRate })
const estimator = (name, options) => ({ "training.estimator": { name, invalidActionPenalty: 0.1, ...options } })
const without = (options) => estimator("gigpo", { normalization: "none", ...options })
/** @param learn which steps' credit counts: bench/paper/rows.mjs */
const learn = (learn) => ({ "training.estimator": { use: "../bench/paper/rows.mjs", learn } })

/** One thing at a time beside the first, that undoes what was cloned. */
export const undoing = [
  variant("rate 1e-3", {}),
  variant("rate 3e-4", rate(3e-4)),
  variant("rate 1e-4", rate(1e-4)),
  variant("shuffled credit", learn("shuffled")),
  variant("shuffled credit, rate 3e-4", { ...learn("shuffled"), ...rate(3e-4) }),
  variant("shuffled credit, rate 1e-4", { ...learn("shuffled"), ...rate(1e-4) }),
  variant("256 groups", { "training.groups": 256 }),
  variant("64 groups", { "training.groups": 64 }),
  variant("no warm-up", { "training.optimizer.warmup": 0 }),
  variant("warm-up of 20", { "training.optimizer.warmup": 20 }),
  variant("temperature 0.6", { "training.rollout.temperature": 0.6 }),
  variant("better alone", learn("better")),
  variant("worse alone", learn("worse")),
  variant("readable alone", learn("readable")),
  variant("deviation", without({ normalization: "std" })),
  variant("KL 0.1", { "training.loss.klWeight": 0.1 }),
  variant("entropy 0.01", { "training.loss.entropyWeight": 0.01 }),
  variant("epsilon 1e-3", { "training.optimizer.epsilon": 1e-3 }),
  variant("GRPO", estimator("grpo", { normalization: "none" })),
]

/** GiGPO and GRPO, with and without division by the deviation, at each of the learning rates. */
export function tuning(rates) {
  return rates.flatMap((learningRate) =>
    ["gigpo", "grpo"].flatMap((name) =>
      ["none", "std"].map((normalization) =>
        variant(`${name}-${normalization}-${learningRate}`, {
          ...estimator(name, { normalization }),
          ...rate(learningRate),
        }),
      ),
    ),
  )
}
