import { joined } from "../joined.ts"
import type { State, Stateful } from "../state.ts"

/** One step of an earlier iteration, with what it was sampled with. */
export interface Remembered {
  readonly tokens: Int32Array
  /** Where its reply begins. */
  readonly start: number
  readonly logProbs: Float32Array
  readonly referenceLogProbs?: Float32Array | undefined
  /** R(τ) of its episode. */
  readonly outcome: number
  readonly iteration: number
}

/** The last steps that did well, and what tasks have come to, oldest first; saved with every checkpoint. */
export class ReplayMemory implements Stateful {
  steps: readonly Remembered[] = []
  /** Mean returns of tasks. */
  means: readonly number[] = []

  /** Takes these on, and forgets what is too old or too much. */
  keep(
    found: readonly Remembered[],
    means: readonly number[],
    { capacity, since, history }: { readonly capacity: number; readonly since: number; readonly history: number },
  ): void {
    this.steps = [...this.steps, ...found].filter(({ iteration }) => iteration >= since).slice(-capacity)
    this.means = [...this.means, ...means].slice(-history)
  }

  /** The median of what tasks came to; 0 where there were none. */
  baseline(): number {
    const sorted = [...this.means].sort((a, b) => a - b)
    const half = sorted.length / 2
    return sorted.length === 0 ? 0 : (sorted[Math.ceil(half) - 1]! + sorted[Math.floor(half)]!) / 2
  }

  state(): State {
    const hasReference = this.steps.map(({ referenceLogProbs }) => referenceLogProbs !== undefined)
    return {
      json: this.steps.map(({ tokens, start, outcome, iteration }, at) => [
        tokens.length,
        start,
        outcome,
        iteration,
        hasReference[at]!,
      ]),
      arrays: {
        means: Float64Array.from(this.means),
        tokens: joined(
          Int32Array,
          this.steps.map(({ tokens }) => tokens),
        ),
        logProbs: joined(
          Float32Array,
          this.steps.map(({ logProbs }) => logProbs),
        ),
        reference: joined(
          Float32Array,
          this.steps.flatMap(({ referenceLogProbs }) => referenceLogProbs ?? []),
        ),
      },
    }
  }

  restore({ json, arrays }: State): void {
    const { means, tokens, logProbs, reference } = arrays as Record<
      "means" | "tokens" | "logProbs" | "reference",
      never
    >
    this.means = Array.from(means as Float64Array)
    let [token, reply, referred] = [0, 0, 0]
    this.steps = (json as readonly [number, number, number, number, boolean][]).map(
      ([length, start, outcome, iteration, has]) => {
        const sampled = length - start
        const step = {
          tokens: (tokens as Int32Array).slice(token, token + length),
          start,
          logProbs: (logProbs as Float32Array).slice(reply, reply + sampled),
          ...(has && { referenceLogProbs: (reference as Float32Array).slice(referred, referred + sampled) }),
          outcome,
          iteration,
        }
        token += length
        reply += sampled
        if (has) referred += sampled
        return step
      },
    )
  }
}
