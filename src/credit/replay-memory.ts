import { joined } from "../util/joined.ts"
import type { StateDict, Stateful } from "../util/state.ts"

/** Step of an earlier iteration, with its sampling data. */
export interface Remembered {
  readonly tokens: Int32Array
  /** Index of the first token of the completion. */
  readonly start: number
  readonly logProbs: Float32Array
  readonly weights?: Float32Array
  readonly offPolicy?: boolean
  /** Return R(τ) of the episode. */
  readonly outcome: number
  readonly iteration: number
}

/** Replay buffer of the latest good steps and of mean returns of tasks, oldest first. Saved with every checkpoint. */
export class ReplayMemory implements Stateful {
  steps: readonly Remembered[] = []
  /** Mean returns of tasks. */
  means: readonly number[] = []

  /** Removes steps that are older than the newest one by more than `maxAge` iterations, and means beyond `history`; then adds others. */
  keep(
    found: readonly Remembered[],
    means: readonly number[],
    { maxAge, history }: { readonly maxAge: number; readonly history: number },
  ): void {
    const newest = this.steps.at(-1)?.iteration ?? 0
    this.steps = [...this.steps.filter(({ iteration }) => newest - iteration <= maxAge), ...found]
    this.means = [...this.means, ...means].slice(-history)
  }

  /** Median of the mean returns of tasks; 0 without any. */
  baseline(): number {
    const sorted = [...this.means].sort((a, b) => a - b)
    const half = sorted.length / 2
    return sorted.length === 0 ? 0 : (sorted[Math.ceil(half) - 1]! + sorted[Math.floor(half)]!) / 2
  }

  state(): StateDict {
    return {
      json: this.steps.map(({ tokens, start, outcome, iteration, weights, offPolicy = false }) => [
        tokens.length,
        start,
        outcome,
        iteration,
        weights !== undefined,
        offPolicy,
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
        weights: joined(
          Float32Array,
          this.steps.flatMap(({ weights }) => weights ?? []),
        ),
      },
    }
  }

  restore({ json, arrays }: StateDict): void {
    const { means, tokens, ...columns } = arrays as Record<"means" | "tokens" | keyof typeof ends, never>
    const ends = { logProbs: 0, weights: 0 }
    /** Next numbers of a column. */
    const next = (name: keyof typeof ends, length: number) => {
      ends[name] += length
      return (columns[name] as Float32Array).slice(ends[name] - length, ends[name])
    }
    this.means = Array.from(means as Float64Array)
    let end = 0
    this.steps = (json as readonly [number, number, number, number, boolean, boolean][]).map(
      ([length, start, outcome, iteration, isWeighed, offPolicy]) => {
        end += length
        const sampled = length - start
        return {
          tokens: (tokens as Int32Array).slice(end - length, end),
          start,
          logProbs: next("logProbs", sampled),
          ...(isWeighed && { weights: next("weights", sampled) }),
          ...(offPolicy && { offPolicy }),
          outcome,
          iteration,
        }
      },
    )
  }
}
