import { readBelief } from "../beliefs/belief.ts"
import { HouseholdFacts } from "../beliefs/household-facts.ts"
import { predictionScore, stateScore, taskScore } from "../beliefs/scores.ts"
import { type Episode, isScored } from "../episode.ts"
import type { RolloutHooks } from "../hooks.ts"

/**
 * Hook that scores the beliefs of completions in ALFWorld, for the estimator `rebel` (Fateyetian/Rebel). It reports four metrics of each
 * step: `belief-state` (agreement with the facts of all observations so far, including the one after the action), `belief-task` (phase of
 * the task), `belief-prediction` (words of the expectation in the next observation), 0 to 1 each, and `belief-format` (0.01 for a valid
 * completion with a belief, -0.01 if its action is not admissible, -0.05 otherwise). Rewards are unchanged: set `beliefInReward` of the
 * estimator to false. The memory `belief-state` asks for such beliefs.
 */
export function beliefRewards(): Pick<RolloutHooks, "score"> {
  return { score: ({ episodes }) => episodes.map((episode) => (isScored(episode) ? withScores(episode) : episode)) }
}

function withScores(episode: Episode): Episode {
  const facts = new HouseholdFacts()
  facts.read(episode.steps[0]?.observation.text ?? "")
  const steps = episode.steps.map((step, at) => {
    const next = episode.steps[at + 1]?.observation ?? episode.last
    facts.read(next?.text ?? "")
    const belief = readBelief(step.text)
    const isAdmissible = step.observation.actions?.includes(step.action) !== false
    const format = !belief || !step.valid ? -0.05 : isAdmissible ? 0.01 : -0.01
    const succeeded = at + 1 === episode.steps.length && episode.metrics.success === 1
    const scores = {
      "belief-state": belief ? stateScore(belief, facts, at === 0) : 0,
      "belief-task": belief ? taskScore(belief, next?.actions ?? [], succeeded) : 0,
      "belief-prediction": belief ? predictionScore(belief, next?.text ?? "") : 0,
      "belief-format": format,
    }
    return { ...step, metrics: { ...step.metrics, ...scores } }
  })
  return { ...episode, steps }
}
