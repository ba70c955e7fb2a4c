// An estimator: REINFORCE with a running mean of all returns so far as its baseline. It remembers the mean, so it is saved with
// every checkpoint.
import { fields } from "gigpo"
import type { Batch, Estimator } from "gigpo/advantages"

export const options = {
  rate: fields.number(0.1, "How fast the baseline follows the returns.", { above: 0, max: 1 }),
}

export default function runningBaseline({ rate }: { rate: number }): Estimator {
  let mean: number | undefined
  return {
    name: "running-baseline",
    estimate(batch: Batch) {
      const returns = new Float64Array(batch.length)
      const totals = new Map<number, number>()
      for (const [step, reward] of batch.rewards.entries()) {
        const episode = batch.episode[step]!
        totals.set(episode, (totals.get(episode) ?? 0) + reward)
      }
      for (const [step, episode] of batch.episode.entries()) returns[step] = totals.get(episode)!
      const now = [...totals.values()].reduce((sum, total) => sum + total, 0) / totals.size
      const baseline = mean ?? now
      mean = baseline + rate * (now - baseline)
      return { advantages: returns.map((value) => value - baseline), metrics: { "baseline/mean": baseline } }
    },
    state: () => ({ json: { mean: mean ?? null } }),
    restore({ json }) {
      mean = (json as { mean: number | null }).mean ?? undefined
    },
  }
}
