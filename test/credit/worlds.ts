import { estimate } from "../../src/credit/as-estimator.ts"
import { type BatchStep, toBatch } from "../../src/credit/batch.ts"
import type { Batch, Credit, Estimator, EstimatorContext } from "../../src/credit/estimator.ts"
import { Random } from "../../src/util/random.ts"
import { expectClose } from "./close.ts"
import { interleave } from "./steps.ts"

/** Step with all fields that an estimator can use. */
export interface Told extends BatchStep {
  readonly anchor: string
  readonly nextAnchor: string | undefined
  readonly length: number
  readonly valid: boolean
  readonly turn: number
  readonly last: boolean
  readonly metrics: Readonly<Record<string, number>>
}

export const context = (iteration = 0, iterations = 10): EstimatorContext => ({
  progress: { iteration, iterations },
  random: new Random(iteration),
})

/** Some metrics that a step may have, or not. */
function metricsOf(random: Random): Record<string, number> {
  const names = ["gain", "belief", "format", "value", "judged", "plan"]
  const some = names.filter(() => random.below(5) > 0)
  return Object.fromEntries(some.map((name) => [name, (random.below(9) - 4) / 4]))
}

/** 4 tasks of 1 to 6 episodes of 1 to 7 steps, in a world of few states so that histories meet; the first task has equal rewards. */
export function randomEpisodes(random: Random): Told[][] {
  const rewards = [0, 0, 0, 1, 2.5, -0.75]
  return Array.from({ length: 4 }, (_, task) =>
    Array.from({ length: task === 0 ? 3 : 2 + random.below(5) }, (_, id) => {
      const count = 1 + random.below(7)
      const states = Array.from({ length: count + 1 }, () => `s${random.below(3)}`)
      const strategy = random.below(2)
      return Array.from({ length: count }, (_, turn): Told => {
        const metrics = {
          ...metricsOf(random),
          strategy,
          kind: task % 2,
          success: turn === count - 1 ? random.below(2) : 0,
        }
        return {
          task,
          episode: id,
          turn,
          last: turn === count - 1,
          anchor: states[turn]!,
          nextAnchor: states[turn + 1],
          reward: task === 0 ? 0 : rewards[random.below(rewards.length)]!,
          valid: task === 0 || random.below(4) > 0,
          length: 1 + random.below(4),
          agent: random.below(2),
          conversation: turn < 2 ? "first" : "then",
          metrics,
          record: {
            observation: { text: "", anchor: states[turn]! },
            text: "",
            action: ["go", "look", "go\nwait"][random.below(2)]!,
            metrics,
          },
        }
      })
    }),
  ).flat()
}

export const worlds = Array.from({ length: 12 }, (_, seed) => {
  const random = new Random(seed)
  return interleave(random.shuffled(randomEpisodes(random)), random)
})

export const creditOf = (
  estimator: Estimator,
  steps: readonly BatchStep[],
  statistics?: Batch["statistics"],
  at = context(),
) => estimate(estimator, toBatch(steps, statistics), at) as Promise<Credit>

export const advantagesOf = async (
  estimator: Estimator,
  steps: readonly BatchStep[],
  statistics?: Batch["statistics"],
) => (await creditOf(estimator, steps, statistics)).advantages as Float64Array

export const keyOf = ({ task, episode }: BatchStep) => `${task}/${episode}`

/** The same world with its episodes in another order, interleaved otherwise. */
export function rearranged<Step extends BatchStep>(steps: readonly Step[], random: Random): Step[] {
  const episodes = [...new Set(steps.map(keyOf))].map((key) => steps.filter((step) => keyOf(step) === key))
  return interleave(random.shuffled(episodes), random)
}

/** Whatever the order of episodes, each step gets the same. */
export async function expectOrderless(make: () => Estimator): Promise<void> {
  const random = new Random(7)
  for (const steps of worlds.slice(0, 6)) {
    const expected = await advantagesOf(make(), steps)
    const other = rearranged(steps, random)
    const found = await advantagesOf(make(), other)
    expectClose(
      steps.map((step) => found[other.indexOf(step)]!),
      expected,
      1e-9,
    )
  }
}

/** Episodes whose steps all earn, and measure, the same. */
export function equalEpisodes(reward: number, members = 5): Told[] {
  return Array.from({ length: members }, (_, id) =>
    [0, 1, 2].map((turn): Told => {
      const metrics = {
        gain: 0.3,
        belief: 0.1,
        format: 0.2,
        value: 0.7,
        strategy: id % 2,
        kind: 1,
        success: 0,
        judged: 0,
        plan: 0,
      }
      const anchor = `s${turn}`
      const record = { observation: { text: "", anchor }, text: "", action: "go", metrics }
      return {
        ...{
          task: "t",
          episode: id,
          turn,
          last: turn === 2,
          anchor,
          nextAnchor: `s${turn + 1}`,
          reward,
          length: 1 + (id % 3),
        },
        ...{ valid: true, metrics, record },
      }
    }),
  ).flat()
}

export const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
export const mean = (values: readonly number[]) => sum(values) / values.length
export const deviation = (values: readonly number[], kind: "sample" | "population" = "sample") =>
  Math.sqrt(sum(values.map((value) => (value - mean(values)) ** 2)) / (values.length - (kind === "sample" ? 1 : 0)))

/** What each step has among those of one key, by its place in the world; `alone` if there is no other. */
export function amongPeers(
  steps: readonly Told[],
  keyOfStep: (step: Told) => string | undefined,
  measure: (step: Told) => number,
  compare: (value: number, peers: readonly number[]) => number,
  alone = 0,
): number[] {
  return steps.map((step) => {
    const key = keyOfStep(step)
    const peers = steps.filter((other) => keyOfStep(other) === key)
    if (key === undefined || peers.length < 2) return alone
    const values = peers.map(measure)
    return Math.max(...values) - Math.min(...values) < 1e-12 ? 0 : compare(measure(step), values)
  })
}

/** The steps of a step's episode from it on. */
export function fromOn(steps: readonly Told[], step: Told): Told[] {
  return steps
    .filter((other) => keyOf(other) === keyOf(step) && other.turn >= step.turn)
    .sort((a, b) => a.turn - b.turn)
}

export const returnOf = (steps: readonly Told[], step: Told) =>
  sum(steps.filter((other) => keyOf(other) === keyOf(step)).map(({ reward }) => reward))

/** R(τ) of a step against the episodes of its task, each once. */
export function outcomeOf(
  steps: readonly Told[],
  step: Told,
  std: "none" | "sample" | "population" = "sample",
): number {
  const firsts = steps.filter((other) => other.task === step.task && other.turn === 0)
  const returns = firsts.map((other) => returnOf(steps, other))
  if (returns.length < 2 || Math.max(...returns) - Math.min(...returns) < 1e-12) return 0
  const distance = returnOf(steps, step) - mean(returns)
  return std === "none" ? distance : distance / (deviation(returns, std) + 1e-6)
}
