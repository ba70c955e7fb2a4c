import type { BatchStep } from "../credit/batch.ts"
import { discountedReturns } from "../credit/returns.ts"
import type { State, Stateful } from "../util/state.ts"

/** What one iteration's returns count beside those before. */
const share = 0.1

/**
 * The units in which a critic predicts: returns less their mean, over their standard deviation, both running averages over
 * iterations. A critic starts at 0, and would take hundreds of steps for the mean of large returns alone before it told states apart;
 * and as the policy improves, the mean moves without it (after van Hasselt et al., "Learning values across many orders of magnitude",
 * arXiv 1602.07714, whose exact correction of the head for every move is left out: within an iteration the units stay).
 */
export class ReturnScale implements Stateful {
  readonly name: string = "return-scale"
  /** Of returns and of their squares. */
  #means: { readonly first: number; readonly second: number } | undefined

  /** Moves the units to what these steps came to, undiscounted. */
  fit(steps: readonly Pick<BatchStep, "task" | "episode" | "reward">[]): void {
    if (steps.length === 0) return
    const returns = discountedReturns(
      steps.map(({ reward }) => reward),
      1,
      steps.map(({ task, episode }) => `${task} ${episode}`),
    )
    const [first, second] = [mean(returns), mean(returns.map((value) => value * value))]
    const before = this.#means ?? { first, second }
    const moved = (from: number, to: number) => from + share * (to - from)
    this.#means = { first: moved(before.first, first), second: moved(before.second, second) }
  }

  /** From the critic's units to those of rewards. */
  toRewards(values: Float32Array): Float32Array {
    const [middle, width] = this.#units()
    return values.map((value) => middle + width * value)
  }

  /** And back. */
  toCritic(returns: Float32Array): Float32Array {
    const [middle, width] = this.#units()
    return returns.map((value) => (value - middle) / width)
  }

  state(): State {
    return this.#means ? { json: this.#means } : {}
  }

  restore({ json }: State): void {
    this.#means = json as { first: number; second: number }
  }

  /** Where all returns are equal, those of rewards around them. */
  #units(): readonly [middle: number, width: number] {
    if (!this.#means) return [0, 1]
    const { first, second } = this.#means
    const width = Math.sqrt(Math.max(second - first * first, 0))
    return [first, width > 1e-6 * Math.abs(first) ? width : 1]
  }
}

function mean(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
