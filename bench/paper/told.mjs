// Estimators that need more data than rewards. The data are functions of the batch that are defined for all environments. For
// `training.estimator: { use: … }`.

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
  by: fields.oneOf("a2tgpo", ["a2tgpo", "igpo", "rebel", "strata", "vine-ppo"], "Name of the estimator."),
}

const penalty = { invalidActionPenalty: 0.1 }
/** Information gain of a turn: its reward. */
const gain = ({ rewards }) => Float64Array.from(rewards)

const estimators = {
  a2tgpo: () => a2tgpo({ ...penalty, gain }),
  igpo: () => igpo({ ...penalty, gain }),
  // The belief is the anchor state.
  rebel: () =>
    rebel({ ...penalty, belief: ({ observation }) => observation.anchor, beliefRewards: [], beliefWeights: [] }),
  // The strategy is the beginning of the episode.
  strata: () => strata({ ...penalty, strategy: plannedStrategies.strategy }),
  "vine-ppo": () => vinePpo({ ...penalty, value }),
}

/** Value of a state: mean return over all visits of the state in its task. */
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
