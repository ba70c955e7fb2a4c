import { describe, expect, it } from "vitest"
import { estimate } from "../../src/credit/as-estimator.ts"
import { type BatchStep, toBatch } from "../../src/credit/batch.ts"
import type { Credit } from "../../src/credit/estimator.ts"
import { grpo } from "../../src/credit/grpo.ts"
import {
  type Hindsight,
  type TeacherTokenWeightOptions,
  teacherTokenWeights,
} from "../../src/credit/teacher-token-weights.ts"
import { Random } from "../../src/util/random.ts"
import { badArgument } from "../kernels/bad-argument.ts"

const context = { progress: { iteration: 5, iterations: 10 }, random: new Random(0) }
const texts = [
  ["a", "<action>", "go", "</action>"],
  ["<action>", "no", "</action>", ""],
  ["nothing", " to", " do"],
]
const steps: BatchStep[] = texts.map((tokenTexts, episode) => ({
  task: 0,
  episode,
  reward: 0,
  length: tokenTexts.length,
  tokenTexts,
}))
const old = texts.map((of) => new Float64Array(of.length).fill(-1))
const gaps = [
  [9, 0.1, -0.2, 3],
  [0.3, -5, 0.4, 9],
  [9, 9, 9],
]
const teacher = gaps.map((of) => Float64Array.from(of, (gap) => gap - 1))
const advantages = Float64Array.of(2, -1, 1)

const credit = async (options: TeacherTokenWeightOptions, under: Partial<Credit> = {}, hindsight?: Hindsight) => {
  const base = { name: "base", estimate: async () => ({ advantages, ...under }) }
  return await estimate(teacherTokenWeights(base, options, hindsight), toBatch(steps, { old, teacher }), context)
}
const close = (values: readonly number[]) => values.map((value) => expect.closeTo(value, 6))

describe("teacherTokenWeights", () => {
  it("weight action tokens by the agreement of teacher and advantage", async () => {
    const { weights, metrics, advantages: kept } = await credit({ alpha: 0.5 })
    expect([...weights![0]!]).toEqual(close([1, Math.exp(0.05), Math.exp(-0.1), 2]))
    expect([...weights![1]!]).toEqual(close([Math.exp(-0.15), 2, Math.exp(-0.2), 1]))
    expect([...weights![2]!]).toEqual([1, 1, 1])
    expect(kept).toBe(advantages)
    const all = [Math.exp(0.05), Math.exp(-0.1), 2, Math.exp(-0.15), 2, Math.exp(-0.2)]
    expect(metrics).toEqual({
      "teacher/log-ratio": expect.closeTo((0.1 - 0.2 + 3 + 0.3 - 5 + 0.4) / 6, 9),
      "teacher/token-weight": expect.closeTo(all.reduce((a, b) => a + b) / 6, 9),
    })
  })

  it("can be per step, by the mean over its action", async () => {
    const { weights } = await credit({ level: "step", alpha: 0.1 })
    expect([...weights![0]!]).toEqual(close([1, ...new Array(3).fill(Math.exp(0.1 * (2.9 / 3)))]))
    expect([...weights![1]!]).toEqual(close([...new Array(3).fill(Math.exp(0.1 * (4.3 / 3))), 1]))
  })

  it("are 1 if alpha or an advantage is 0, and stay within their bounds", async () => {
    const one = ({ weights }: Credit) => weights!.every((of) => of.every((weight) => weight === 1))
    expect(one(await credit({ alpha: 0 }))).toBe(true)
    expect(one(await credit({ alpha: { from: 1, to: 0, over: 5 } }))).toBe(true)
    expect(one(await credit({}, { advantages: new Float64Array(3) }))).toBe(true)
    const { weights } = await credit({ alpha: 9, low: 0.9, high: 1.25 })
    expect([...weights![1]!]).toEqual(close([0.9, 1.25, 0.9, 1]))
  })

  it("use per-token advantages, multiply existing weights, and ignore skipped steps", async () => {
    const { weights } = await credit(
      { alpha: 0.5 },
      {
        advantages: texts.map((of) => Float32Array.from(of, (_, t) => (t === 2 ? -1 : 1))),
        weights: texts.map((of) => new Float32Array(of.length).fill(3)),
        skip: Uint8Array.of(0, 1, 0),
      },
    )
    expect([...weights![0]!]).toEqual(close([3, 3 * Math.exp(0.05), 3 * Math.exp(0.1), 6]))
    expect([...weights![1]!]).toEqual([3, 3, 3, 3])
  })

  it("use a teacher with hindsight instead of the training's teacher", async () => {
    const seen: number[] = []
    const hindsight: Hindsight = async (batch, { progress }) => {
      seen.push(batch.length, progress.iteration)
      return old
    }
    expect(teacherTokenWeights(grpo()).needs).toEqual(["old", "text", "teacher"])
    expect(teacherTokenWeights(grpo(), {}, hindsight).needs).toEqual(["old", "text"])
    const { weights } = await credit({}, {}, hindsight)
    expect([...weights![0]!]).toEqual([1, 1, 1, 1])
    expect(seen).toEqual([3, 5])
    await expect(credit({}, {}, () => [])).rejects.toEqual(
      badArgument(/no log-probabilities of a teacher for the 4 tokens of step 0/),
    )
  })

  it("reject invalid options, and batches without the needed columns", async () => {
    expect(() => teacherTokenWeights(grpo(), { low: 2 })).toThrow(badArgument(/low must be a number from 0 to 1/))
    expect(() => teacherTokenWeights(grpo(), { high: 0.5 })).toThrow(badArgument(/high must be at least 1/))
    await expect(estimate(teacherTokenWeights(grpo()), toBatch(steps, { old }), context)).rejects.toEqual(
      badArgument(/statistics.teacher; give all of them/),
    )
  })
})
