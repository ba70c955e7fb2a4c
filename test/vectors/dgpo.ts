import { dgpoWeights } from "../../src/loss/dgpo-weights.ts"
import { each, entropyNames, isTable, type Numbers, vocabularyOf } from "./columns.ts"
import { find, type Table, type Topic, under } from "./topic.ts"

/** The share of each token in its sequence's advantage, from given distances, or from distributions. */
export const dgpo: Topic = ({ params, inputs, expected }) => {
  const size = vocabularyOf(params)
  const [policy, reference] = [
    ["p", "pi", "policy", "probs"],
    ["q", "ref", "pi_ref", "reference", "ref_probs"],
  ].map((names) => find<Table>(inputs, names, []))
  const distances = find<Numbers | Table>(
    inputs,
    ["d", "hellinger", "distance", "distances", "D"],
    policy!.map((row, t) => hellinger(row, reference![t]!)),
  )
  const told = find<Numbers | Table>(inputs, ["H_tilde", "H_norm", "entropy_norm", "normalized_entropy"], [])
  const given = told.length > 0 ? told : find<Numbers | Table>(inputs, entropyNames, policy!.map(entropyOf))
  const scale = told.length > 0 || size === undefined ? 1 : Math.log(size)
  const options = { tau: find(params, ["tau", "temperature"], 0.5), kappa: find(params, ["kappa", "k"], 1) }
  const entropies = each(given, (row) => row.map((entropy) => entropy / scale))
  const rowOf = (all: unknown, at: number) => (isTable(all) ? all[at]! : all) as Numbers
  const weights = each(distances, (row, at) => Array.from(dgpoWeights(row, rowOf(entropies, at), options)))
  const scores = each(distances, (row, at) => row.map((d, t) => d * rowOf(entropies, at)[t]! ** options.kappa))
  const advantages = [find<number | Numbers>({ ...params, ...inputs }, ["A", "advantage", "advantages"], 1)].flat()
  const shared = each(weights as Numbers | Table, (row, at) =>
    row.map(
      (weight, t) =>
        weight * (isTable(weights) || advantages.length === 1 ? advantages[at % advantages.length]! : advantages[t]!),
    ),
  )
  if (Array.isArray(expected)) return weights
  return {
    ...under("w weight weights", weights),
    ...under("s score scores", scores),
    ...under("d hellinger distance distances", distances),
    ...under("A A_t A_token advantage advantages", shared),
  }
}

/** √(½ Σ (√p - √q)²) */
const hellinger = (p: Numbers, q: Numbers): number =>
  Math.sqrt(p.reduce((sum, one, v) => sum + (Math.sqrt(one) - Math.sqrt(q[v]!)) ** 2, 0) / 2)

const entropyOf = (p: Numbers): number => p.reduce((sum, one) => sum - (one > 0 ? one * Math.log(one) : 0), 0)
