import type { BatchStep } from "../credit/batch.ts"
import { discountedReturns } from "../credit/returns.ts"
import type { StateDict, Stateful } from "../util/state.ts"

/** Weight of the newest iteration in the running means. */
const share = 0.1

/**
 * Units of a critic's predictions: (return - mean) / standard deviation, with running averages over iterations. The predictions of a new
 * critic are 0. Without these units, a critic would need hundreds of steps to learn the mean of large returns before it learned differences
 * between states, and the mean would change as the policy improves. After van Hasselt et al., "Learning values across many orders of
 * magnitude", arXiv 1602.07714, without the exact correction of the head: the units are constant within an iteration.
 */
export class ReturnScale implements Stateful {
  readonly name: string = "return-scale"
  /** Running means of the returns and of their squares. */
  #means: { readonly first: number; readonly second: number } | undefined

  /** Updates the units with the undiscounted returns of these steps. */
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

  /** Converts values from the critic's units to units of rewards. */
  toRewards(values: Float32Array): Float32Array {
    const [middle, width] = this.#units()
    return values.map((value) => middle + width * value)
  }

  /** Converts returns from units of rewards to the critic's units. */
  toCritic(returns: Float32Array): Float32Array {
    const [middle, width] = this.#units()
    return returns.map((value) => (value - middle) / width)
  }

  state(): StateDict {
    return this.#means ? { json: this.#means } : {}
  }

  restore({ json }: StateDict): void {
    this.#means = json as { first: number; second: number }
  }

  /** Mean and standard deviation. The latter is 1 if all returns are equal. */
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
