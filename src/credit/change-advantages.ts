import type { Credit } from "./estimator.ts"

// What estimators around others do to advantages, be they one a step or one a token.

/** The same credit with other advantages: `change` is given each with its step, those of its tokens one after the other. */
export function changeAdvantages(credit: Credit, change: (advantage: number, step: number) => number): Credit {
  const { advantages } = credit
  return {
    ...credit,
    advantages:
      advantages instanceof Float64Array
        ? advantages.map(change)
        : advantages.map((tokens, step) => tokens.map((advantage) => change(advantage, step))),
  }
}

/** 1 for a step that is learned from, [steps]; 0 for one that is left out, and so is in no mean. */
export function learnedSteps({ skip }: Credit, steps: number): Uint8Array {
  return new Uint8Array(steps).map((_, step) => (skip?.[step] === 1 ? 0 : 1))
}

/** Over the steps that are learned from, or over their tokens. */
export function meanAdvantage({ advantages }: Credit, learned: Uint8Array): number {
  let [sum, count] = [0, 0]
  for (const [step, one] of advantages.entries()) {
    if (learned[step] === 0) continue
    for (const value of typeof one === "number" ? [one] : one) {
      sum += value
      count++
    }
  }
  return sum / Math.max(count, 1)
}
