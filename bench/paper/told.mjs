// Estimators that look at more than rewards, told by what every environment has: what each holds of a step is a function of the batch.
// As `training.estimator: { use: … }`.

import {
  a2tgpo,
  discountedReturns,
  igpo,
  plannedStrategies,
  rebel,
  strata,
  vinePpo,
} from "../../modules/entries/advantages.js"
import { fields } from "../../modules/entries/index.js"

export const options = {
  by: fields.oneOf("a2tgpo", ["a2tgpo", "igpo", "rebel", "strata", "vine-ppo"], "Which of them."),
}

const penalty = { invalidActionPenalty: 0.1 }
/** A turn gains what it is rewarded with. */
const gain = ({ rewards }) => Float64Array.from(rewards)

const estimators = {
  a2tgpo: () => a2tgpo({ ...penalty, gain }),
  igpo: () => igpo({ ...penalty, gain }),
  // Where it stands is what it believes.
  rebel: () =>
    rebel({ ...penalty, belief: ({ observation }) => observation.anchor, beliefRewards: [], beliefWeights: [] }),
  // How an episode begins is its strategy.
  strata: () => strata({ ...penalty, strategy: plannedStrategies.strategy }),
  "vine-ppo": () => vinePpo({ ...penalty, value }),
}

/** What was earned from a state on, as the mean over all visits of its task. */
function value({ rewards, episode, anchorGroups }) {
  const returns = discountedReturns(rewards, 1, episode)
  const [sums, counts] = [new Float64Array(returns.length), new Float64Array(returns.length)]
  for (const [row, group] of anchorGroups.entries()) {
    sums[group] += returns[row]
    counts[group]++
  }
  return Float64Array.from(anchorGroups, (group) => sums[group] / counts[group])
}

export default function told({ by }) {
  return estimators[by]()
}
