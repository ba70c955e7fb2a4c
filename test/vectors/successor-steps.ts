import { a2tgpo } from "../../src/credit/a2tgpo.ts"
import { type BatchStep, toBatch } from "../../src/credit/batch.ts"
import { empg } from "../../src/credit/empg.ts"
import type { Estimator } from "../../src/credit/estimator.ts"
import { grpo } from "../../src/credit/grpo.ts"
import { hgpo } from "../../src/credit/hgpo.ts"
import { rebel } from "../../src/credit/rebel.ts"
import { discountedReturns, episodeReturns } from "../../src/credit/returns.ts"
import { rewardFlow } from "../../src/credit/reward-flow.ts"
import { type Arrivals, flowValues, stateGraph } from "../../src/credit/state-graph.ts"
import { vpr } from "../../src/credit/vpr.ts"
import { creditOf, measured, perConfiguration, stepsOf } from "./fixture.ts"
import { find, type Results, type Topic, type Vector } from "./topic.ts"

type Params = Readonly<Record<string, unknown>>

const gammaOf = ({ fixture }: Vector, params: Params, fallback = fixture?.gamma ?? 0.95) =>
  find<number>(params, ["gamma"], fallback)
const epsilonOf = (params: Params, fallback = 1e-6) => find<number>(params, ["eps", "epsilon"], fallback)
const listOf = (values: unknown) => Array.from(values as ArrayLike<number>)

/** The number after one of these words in a configuration's name: "K=2", "alpha0.5". */
function numberIn(name: string, words: string): number | undefined {
  const found = new RegExp(`(?:^|[^a-z])(?:${words})[_ =:]*([\\d.]+)`, "i").exec(name)?.[1]
  return found === undefined ? undefined : Number(found)
}

const hgpoTopic: Topic = (vector) =>
  perConfiguration(vector, ["A", "advantage"], async (name, params) => {
    const mode = find<string>(params, ["mode"], /mean/.test(name) && !/std/.test(name) ? "mean_norm" : "mean_std_norm")
    const convention = `${name} ${find<string>(params, ["weights", "weighting", "convention"], "")}`
    const weighting = /k\^|cazero|paper/i.test(convention) ? "k" : "k+1"
    const estimator = hgpo({
      gamma: gammaOf(vector, params),
      epsilon: epsilonOf(params),
      history: numberIn(name, "K|history|hist|H") ?? find(params, ["K", "history", "history_length"], 2),
      alpha: numberIn(name, "alpha|a") ?? find(params, ["alpha", "length_weight_alpha"], 1),
      weighting,
      ...(weighting === "k" && { weightEpsilon: 0 }),
      baseGroup: /(?<!no.?)base(?!.{0,8}(?:false|0))/i.test(name) || find<boolean>(params, ["base_group"], false),
      normalization: mode === "mean_norm" ? "none" : "population",
      episodeStatistics: "steps",
      singletonEpisode: "raw",
    })
    const found = listOf((await creditOf(estimator, stepsOf(vector))).advantages)
    return { A: found, advantage: found }
  })

/** Next states of the fixture's steps: the given one, else the next state of the episode; after its last step that of `final`. */
function withNext(vector: Vector): BatchStep[] {
  const { inputs, fixture } = vector
  const told = find<readonly (string | null)[]>(inputs, ["next_state", "next_states", "next", "nextAnchor"], [])
  const finals = find<Readonly<Record<string, string>>>(
    inputs,
    ["final_state", "final_states", "final", "terminal"],
    {},
  )
  return stepsOf(vector, (row) => {
    const { traj, turn, next } = fixture!.steps[row]!
    const later = fixture!.steps.find((step) => step.traj === traj && step.turn === turn + 1)
    const nextAnchor = told[row] ?? next ?? later?.state ?? finals[traj]
    return nextAnchor === undefined ? {} : { nextAnchor }
  })
}

const rewardflow: Topic = (vector) =>
  perConfiguration(
    vector,
    ["signal", "step_signal", "V", "values", "node_values", "A", "A_S", "A_E"],
    async (name, params) => {
      const gamma = gammaOf(vector, params, 0.9)
      const arrivals: Arrivals = /first|order|reference/i.test(name) ? "first" : "largest"
      const steps = withNext(vector)
      const normalization = find<string>(params, ["mode"], "mean_norm") === "mean_norm" ? "none" : "sample"
      const given = { gamma, arrivals, normalization, epsilon: epsilonOf(params), idleActions: [] } as const
      const estimator = rewardFlow({ ...given, episodeStatistics: "steps", singletonEpisode: "raw" })
      const { advantages, details } = await creditOf(estimator, steps)
      const graph = stateGraph(toBatch(steps), { arrivals, idleActions: [] })
      const values = flowValues(graph, gamma)
      const ofStates: Record<string, unknown> = {}
      const set = (prompt: string, state: string | undefined, node: number) => {
        if (node < 0 || state === undefined) return
        ofStates[state] = values[node]
        ofStates[prompt] = { ...(ofStates[prompt] as object | undefined), [state]: values[node] }
      }
      for (const [row, { task, anchor, nextAnchor }] of steps.entries()) {
        set(String(task), anchor, graph.from[row]!)
        set(String(task), nextAnchor, graph.to[row]!)
      }
      const { returns, episodeAdvantages, stepAdvantages } = details!
      return {
        ...{ A: listOf(advantages), A_E: listOf(episodeAdvantages), A_S: listOf(stepAdvantages) },
        ...{
          signal: listOf(returns),
          step_signal: listOf(returns),
          V: ofStates,
          values: ofStates,
          node_values: ofStates,
        },
      }
    },
  )

const rebelTopic: Topic = (vector) =>
  perConfiguration(vector, ["A", "A_E", "A_S", "R_g", "R_env", "R_belief"], async (name, params) => {
    const { inputs } = vector
    const beliefs = find<readonly (string | number)[]>(inputs, [
      "belief",
      "beliefs",
      "belief_key",
      "belief_keys",
      "keys",
      "belief_hash",
      "key",
    ])
    const rewards = find<readonly number[]>(inputs, ["r_cons", "belief_reward", "belief_rewards", "r_belief"])
    const isApart = find<boolean>({ ...inputs, ...params }, ["env_only", "reward_is_env"], false)
    const omega = find<number>(params, ["omega", "lambda", "step_advantage_w"], 0.5)
    const normalization = (params.mode ?? name) === "mean_std_norm" ? "sample" : "none"
    const estimator = rebel({
      ...{ gamma: gammaOf(vector, params), omega, normalization, epsilon: epsilonOf(params) },
      ...{ belief: (_, row) => beliefs[row], beliefRewards: ["reward"], beliefWeights: [1], beliefInReward: !isApart },
    })
    const steps = stepsOf(vector, (row) => measured({ reward: rewards[row]! }))
    const { advantages, details } = await creditOf(estimator, steps)
    const [A_E, joint] = [listOf(details!.episodeAdvantages), listOf(advantages)]
    const { episode, rewards: earned } = toBatch(steps)
    const own = Float64Array.from(rewards)
    return {
      ...{ A: joint, A_E, A_S: joint.map((one, row) => (one - A_E[row]!) / omega) },
      R_g: listOf(episodeReturns(isApart ? earned : earned.map((one, row) => one - own[row]!), episode)),
      R_env: listOf(details!.returns),
      R_belief: listOf(discountedReturns(own, gammaOf(vector, params), episode)),
    }
  })

/** What some other estimator gave for the fixture, as an estimator. */
const fixed = (advantages: readonly number[]): Estimator => ({
  name: "given",
  estimate: () => ({ advantages: Float64Array.from(advantages) }),
})

const empgTopic: Topic = (vector) =>
  perConfiguration(vector, ["A", "advantage", "g", "h"], async (name, params) => {
    const { inputs } = vector
    const entropies = find<readonly number[]>(inputs, ["entropy", "H", "entropies", "step_entropy", "mean_entropy"])
    const given = find<readonly number[]>(inputs, ["A", "A_in", "advantage", "advantages", "base_advantage"], [])
    const estimator = empg({
      estimator: given.length > 0 ? fixed(given) : grpo({ normalization: "none" }),
      sharpness: numberIn(name, "k") ?? find(params, ["k"], 1),
      claritySharpness: numberIn(name, "k_f|kf") ?? find(params, ["k_f", "kf"], 1),
      clarity: numberIn(name, "zeta") ?? find(params, ["zeta"], 0.05),
      epsilon: epsilonOf(params, 1e-8),
    })
    const statistics = { entropy: entropies.map((one) => Float64Array.of(one)) }
    const { advantages, details } = await creditOf(estimator, stepsOf(vector), statistics)
    const [found, g, h] = [advantages, details!.entropyScales, details!.unitEntropies].map(listOf)
    return { A: found, advantage: found, g, h }
  })

const a2tgpoTopic: Topic = (vector) =>
  perConfiguration(vector, ["A", "z", "D", "c", "clip_scale", "clip"], async (_, params) => {
    const { inputs } = vector
    const gains = find<readonly (number | null)[]>(inputs, ["IG", "ig", "info_gain", "information_gain", "gain"])
    const gainWeight = find<number>(params, ["lambda", "lambda_ig", "coef", "weight"], 0.3)
    const estimator = a2tgpo({
      gain: () => Float64Array.from(gains, (one) => one ?? Number.NaN),
      gamma: find(params, ["gamma"], 1),
      gainWeight,
      clipWeight: find(params, ["clip_coef", "clip", "beta"], 0.3),
      std: String(params.std ?? "population").startsWith("sample") ? "sample" : "population",
      epsilon: epsilonOf(params),
    })
    const { advantages, clipScale, details } = await creditOf(estimator, stepsOf(vector))
    const [z, D, c] = [details!.normalizedGains, details!.gainReturns, clipScale].map(listOf)
    const outcomes = find<readonly number[]>(inputs, ["A_outcome", "outcome_advantage", "A_E"], [])
    const joint = outcomes.length > 0 ? outcomes.map((one, row) => one + gainWeight * D![row]!) : listOf(advantages)
    return { A: joint, z, D, c, clip_scale: c, clip: c }
  })

const vpr_state_groups: Topic = (vector) =>
  perConfiguration(vector, ["A", "advantage", "mask", "skip"], async (name, params) => {
    const { inputs } = vector
    const rewards = find<readonly number[]>(inputs, ["reward", "rewards", "r"])
    const groups = find<readonly (string | number)[]>(inputs, ["state_group", "group", "state", "gid", "uid"])
    const stdScope = /batch|centre|center|then/i.test(`${name} ${params.mode ?? ""}`) ? "batch" : "group"
    const steps = rewards.map((reward, episode) => ({ task: 0, episode, reward, anchor: String(groups[episode]) }))
    const { advantages, skip } = await creditOf(vpr({ stdScope, epsilon: epsilonOf(params, 1e-8) }), steps)
    const found = listOf(advantages)
    const left = listOf(skip)
    return { A: found, advantage: found, advantages: found, skip: left, mask: left.map((one) => 1 - one) } as Results
  })

export const stepTopics: Readonly<Record<string, Topic>> = {
  hgpo: hgpoTopic,
  rewardflow,
  rebel: rebelTopic,
  empg: empgTopic,
  a2tgpo: a2tgpoTopic,
  vpr_state_groups,
}
