import { expect, it } from "vitest"
import { vpr } from "../../src/credit/vpr.ts"
import type { Episode } from "../../src/rollout/episode.ts"
import type { RolloutHooks } from "../../src/rollout/hooks.ts"
import type { IterationReport } from "../../src/runs/report.ts"
import { train } from "../../src/training/train.ts"
import { TablePolicy } from "./table-policy.ts"
import { tableSetup } from "./table-setup.ts"
import { openDoors } from "./tiny.ts"

// One iteration of VPR as published: four completions in every state, the episode continues with one of the best, and all of them are
// learned from in their state's group.

const right: Readonly<Record<string, string>> = { red: "a", green: "b", blue: "c" }
const epsilon = 1e-8
const parse = (completion: string) => ({ action: "abc"[(completion.charCodeAt(0) || 0) % 3]!, valid: true })
const environment = openDoors({ parse })

/** Trains with candidates that an oracle scores; keeps what was played. */
async function trained(options: object, { iterations = 1, learningRate = 5 } = {}) {
  const groups: Episode[][] = []
  const hooks: RolloutHooks = {
    candidates: ({ observation }) => ({
      count: 4,
      score: ({ action }) => Number(right[observation.text.split(" ")[0]!] === action),
    }),
    rolloutEnd: (all) => void groups.push(...all.map(({ episodes }) => [...episodes])),
  }
  const policy = new TablePolicy()
  const reports: readonly IterationReport[] = await train({
    ...tableSetup({ policy, environment, estimator: vpr(options), hooks }),
    optimizer: { learningRate, maxGradientNorm: Number.POSITIVE_INFINITY },
    ...{ iterations, stepsPerUpdate: 10_000, evaluation: { every: 0 } },
    loss: { klWeight: 0, aggregation: "token-mean" },
    rollout: { maxCompletionTokens: 3 },
  })
  return { policy, groups, reports }
}

interface Completion {
  readonly prompt: Int32Array
  readonly completion: Int32Array
  readonly advantage: number
}

/** What each reply is worth, those left out that there is nothing to compare with: a loop of its own over what was played. */
function compared(episodes: readonly Episode[], overBatch: boolean): Completion[] {
  const learned: { prompt: Int32Array; completion: Int32Array; advantage: number }[] = []
  for (const { steps } of episodes)
    for (const step of steps) {
      const completions = [{ ...step, score: step.score! }, ...step.candidates!]
      let [sum, squares] = [0, 0]
      for (const { score } of completions) sum += score
      const mean = sum / completions.length
      for (const { score } of completions) squares += (score - mean) ** 2
      if (squares === 0) continue
      const width = overBatch ? 1 : Math.sqrt(squares / completions.length) + epsilon
      for (const { prompt, completion, score } of completions)
        learned.push({ prompt, completion, advantage: (score - mean) / width })
    }
  if (!overBatch) return learned
  let [sum, squares] = [0, 0]
  for (const { advantage } of learned) sum += advantage
  for (const { advantage } of learned) squares += (advantage - sum / learned.length) ** 2
  const width = Math.sqrt(squares / learned.length) + epsilon
  return learned.map((one) => ({ ...one, advantage: (one.advantage - sum / learned.length) / width }))
}

/** The table after one step of descent on -A log p, the mean over all tokens that are learned from. */
function descended(learned: readonly Completion[], learningRate: number): Float64Array {
  const size = 128
  const logits = new TablePolicy().logits
  const after = logits.slice()
  const tokens = learned.reduce((sum, { completion }) => sum + completion.length, 0)
  for (const { prompt, completion, advantage } of learned) {
    const all = [...prompt, ...completion]
    for (let at = prompt.length; at < all.length; at++) {
      const context = all.slice(Math.max(at - 3, 0), at).reduce((value, token) => (value * 31 + token) % 2048, 0)
      const own = logits.subarray(context * size, (context + 1) * size)
      let total = 0
      for (const logit of own) total += Math.exp(logit)
      for (let v = 0; v < size; v++) {
        const slope = Number(v === all[at]) - Math.exp(own[v]!) / total
        after[context * size + v]! += (learningRate * advantage * slope) / tokens
      }
    }
  }
  return after
}

it.each(["group", "batch"] as const)(
  "learns from the candidates of a state as defined, whitened over the %s",
  async (stdScope) => {
    const { policy, groups, reports } = await trained({ stdScope, epsilon })
    const steps = groups.flat().flatMap((episode) => episode.steps)
    const learned = compared(groups.flat(), stdScope === "batch")
    const left = steps.filter(({ score, candidates }) => candidates!.every((one) => one.score === score))
    expect([learned.length > 0, left.length > 0]).toEqual([true, true])
    const { metrics } = reports[0]!
    const after = descended(learned, metrics["optimizer/learning-rate"]!)
    const furthest = policy.logits.reduce((most, value, at) => Math.max(most, Math.abs(value - after[at]!)), 0)
    expect(furthest).toBeLessThan(1e-5)
    expect(after.reduce((most, value) => Math.max(most, Math.abs(value)), 0)).toBeGreaterThan(0.01)
    expect(metrics["step-group/skipped"]).toBeCloseTo(left.length / steps.length, 12)
    expect(metrics["step-group/candidates"]).toBe((learned.length * 3) / 4)
  },
)

it("learning from candidates improves the choices of the policy", async () => {
  const { groups } = await trained({}, { iterations: 20, learningRate: 100 })
  const isRight = ({ score }: { readonly score?: number }) => score === 1
  const share = (episodes: readonly Episode[]) => {
    const all = episodes.flatMap(({ steps }) => steps.flatMap((step) => [step, ...step.candidates!]))
    return all.filter(isRight).length / all.length
  }
  const [first, last] = [share(groups.slice(0, 15).flat()), share(groups.slice(-15).flat())]
  expect(first).toBeLessThan(0.45)
  expect(last).toBeGreaterThan(first + 0.2)
})
