import { isHolding, readBelief } from "../rollout/beliefs/belief.ts"
import { groupPhase } from "../rollout/beliefs/scores.ts"
import { groupPage, isShop } from "../rollout/beliefs/shopping.ts"
import type { EstimatorStep } from "./estimator.ts"

/** Completion, and the observation with its admissible actions, if there are any. */
type BeliefStep = Pick<EstimatorStep, "text"> & Partial<Pick<EstimatorStep, "observation">>

/**
 * Returns a key of the belief that a completion states, for step groups (ReBel, arXiv 2605.20061). The key consists of the phase of the
 * task, its target without articles and punctuation, whether an object is in the hand, and whether the state of an object was changed.
 * The phase is that of the admissible actions, or in WebShop of the page, as in the authors' code, or without any that of the belief. Numbers stay in the target:
 * "apple 1" and "apple 2" differ. The belief is read from the JSON between <belief> tags, `{ task: { phase, target }, state: { objects,
 * states } }`. All unreadable beliefs have the same key.
 */
export function beliefKey({ text, observation }: BeliefStep): string {
  const belief = readBelief(text)
  if (belief === undefined) return "unreadable"
  const phase = observation?.actions ? phaseOf(observation) : belief.phase
  return JSON.stringify([phase, plainName(belief.target), isHolding(belief), Object.keys(belief.states).length > 0])
}

function phaseOf({ text, actions = [] }: EstimatorStep["observation"]): string {
  return isShop(actions) ? groupPage(text) : groupPhase(actions)
}

function plainName(name: string): string {
  const words = name
    .toLowerCase()
    .replace(/[^a-z0-9\s]/g, "")
    .split(/\s+/)
  return words.filter((word) => !["", "a", "an", "the"].includes(word)).join(" ")
}
