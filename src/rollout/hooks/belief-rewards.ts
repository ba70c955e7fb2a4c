import type { Environment } from "../../environment/environment.ts"
import { type Belief, readBelief } from "../beliefs/belief.ts"
import { HouseholdFacts } from "../beliefs/household-facts.ts"
import { predictionScore, stateScore, taskScore } from "../beliefs/scores.ts"
import { isShop, pagePhase, ShoppingFacts, shoppingNoise, shoppingScore } from "../beliefs/shopping.ts"
import { type Episode, type EpisodeStep, isScored } from "../episode.ts"
import type { RolloutHooks } from "../hooks.ts"

/**
 * Hook that scores the beliefs of completions in ALFWorld and WebShop, for the estimator `rebel` (Fateyetian/Rebel). It reports four metrics of
 * each step: `belief-state` (agreement with the facts of all observations so far, including the one after the action), `belief-task` (phase of
 * the task), `belief-prediction` (words of the expectation in the next observation), 0 to 1 each, and `belief-format` (0.01 for a valid
 * completion with a belief, -0.01 if its action is not admissible, -0.05 otherwise). Rewards are unchanged: set `beliefInReward` of the
 * estimator to false. The memory `belief-state` asks for such beliefs.
 */
export function beliefRewards(): Pick<RolloutHooks, "score"> {
  return {
    score: ({ task, episodes }, { environment }) =>
      episodes.map((episode) => (isScored(episode) ? withScores(episode, judgeOf(task, environment)) : episode)),
  }
}

type Seen = EpisodeStep["observation"]

/** Scores of the beliefs of one episode, in the order of its steps. */
interface BeliefJudge {
  begin(first: Seen | undefined): void
  /** Whether an action is possible. */
  isAdmissible(step: EpisodeStep): boolean
  /** Reads what followed an action. */
  read(next: Seen | undefined, step: EpisodeStep): void
  state(belief: Belief, at: number): number
  task(belief: Belief, next: Seen | undefined, succeeded: boolean): number
  prediction(belief: Belief, next: Seen | undefined): number
}

function judgeOf(task: unknown, environment: Environment | undefined): BeliefJudge {
  return environment?.name === "webshop" ? shop((task as { readonly instruction: string }).instruction) : household()
}

function household(): BeliefJudge {
  const facts = new HouseholdFacts()
  return {
    begin: (first) => facts.read(first?.text ?? ""),
    isAdmissible: ({ observation, action }) => observation.actions?.includes(action) !== false,
    read: (next) => facts.read(next?.text ?? ""),
    state: (belief, at) => stateScore(belief, facts, at === 0),
    task: (belief, next, succeeded) => taskScore(belief, next?.actions ?? [], succeeded),
    prediction: (belief, next) => predictionScore(belief, next?.text ?? ""),
  }
}

function shop(instruction: string): BeliefJudge {
  const facts = new ShoppingFacts(instruction)
  return {
    begin: (first) => facts.read(first?.text ?? "", first?.actions),
    isAdmissible: ({ observation: { text, actions = [] }, action }) =>
      actions.includes(action) || (action.startsWith("search[") && pagePhase(text) === "searching" && !isShop(actions)),
    read: (next, { action }) => facts.read(next?.text ?? "", next?.actions, action),
    state: (belief) => shoppingScore(belief, facts),
    task: ({ phase }, next, succeeded) => Number(phase === (succeeded ? "done" : pagePhase(next?.text ?? ""))),
    prediction: (belief, next) => predictionScore(belief, next?.text ?? "", shoppingNoise),
  }
}

function withScores(episode: Episode, judge: BeliefJudge): Episode {
  judge.begin(episode.steps[0]?.observation)
  const steps = episode.steps.map((step, at) => {
    const next = episode.steps[at + 1]?.observation ?? episode.last
    judge.read(next, step)
    const belief = readBelief(step.text)
    const format = !belief || !step.valid ? -0.05 : judge.isAdmissible(step) ? 0.01 : -0.01
    const succeeded = at + 1 === episode.steps.length && episode.metrics.success === 1
    const scores = {
      "belief-state": belief ? judge.state(belief, at) : 0,
      "belief-task": belief ? judge.task(belief, next, succeeded) : 0,
      "belief-prediction": belief ? judge.prediction(belief, next) : 0,
      "belief-format": format,
    }
    return { ...step, metrics: { ...step.metrics, ...scores } }
  })
  return { ...episode, steps }
}
