import { expect, it } from "vitest"
import { mismatchInPieces, mismatchMetrics } from "../../src/loss/mismatch.ts"
import { badArgument } from "../kernels/bad-argument.ts"

const sampler = [-1, -2, -0.5, -3, -1.5]
const trainer = [-1.2, -1.5, -0.5, -3.1, -2]
const offsets = [0, 2, 5]

const mean = (values: readonly number[]) => values.reduce((a, b) => a + b) / values.length

it("computes metrics from the log-probabilities of two engines for the same tokens", () => {
  const l = [-0.2, 0.5, 0, -0.1, -0.5]
  const training = [2.7 / 2, 5.6 / 3]
  const rollout = [3 / 2, 5 / 3]
  const D = [-0.3 / 2, 0.6 / 3]
  const wanted = {
    "mismatch/kl": 0.3 / 5,
    "mismatch/k3": mean(l.map((x) => Math.exp(x) - x - 1)),
    "mismatch/chi2-token": mean(l.map((x) => Math.exp(2 * x))) - 1,
    "mismatch/chi2-sequence": mean([Math.exp(0.6), Math.exp(-1.2)]) - 1,
    "mismatch/training-perplexity": mean(training.map(Math.exp)),
    "mismatch/training-log-perplexity": mean(training),
    "mismatch/rollout-perplexity": mean(rollout.map(Math.exp)),
    "mismatch/rollout-log-perplexity": mean(rollout),
    "mismatch/perplexity-ratio": mean(D.map(Math.exp)),
    "mismatch/log-perplexity-difference": mean(D),
    "mismatch/log-perplexity-absolute-difference": mean(D.map(Math.abs)),
    "mismatch/log-perplexity-difference-max": 0.2,
    "mismatch/log-perplexity-difference-min": -0.15,
  }
  const found = mismatchMetrics(trainer, sampler, offsets)
  expect(Object.keys(found).sort()).toEqual(Object.keys(wanted).sort())
  for (const [name, value] of Object.entries(wanted))
    expect([name, found[name]]).toEqual([name, expect.closeTo(value, 12)])
})

it("pauses between sequences, and between thousands of tokens", () => {
  const tokens = 40_000
  const column = new Float64Array(tokens).fill(-1)
  const pieces = mismatchInPieces(column, column, [0, 10_000, 20_000, 30_000, tokens])
  let count = 0
  while (!pieces.next().done) count++
  expect(count).toBe(Math.ceil(tokens / 4096) + 4)
})

it("skips tokens that the trainer has not computed, and sequences without others", () => {
  const holes = [...trainer.slice(0, 2), NaN, trainer[2]!, NaN, ...trainer.slice(3)]
  const others = [...sampler.slice(0, 2), -7, sampler[2]!, -8, ...sampler.slice(3)]
  expect(mismatchMetrics(holes, others, [0, 2, 3, 3, 7])).toEqual(mismatchMetrics(trainer, sampler, offsets))
  expect(mismatchMetrics([NaN], [-1], [0, 1])).toEqual({})
  expect(mismatchMetrics([], [], [0])).toEqual({})
})

it("is 0 for equal values, and finite for any difference", () => {
  const same = mismatchMetrics(sampler, sampler, offsets)
  for (const name of ["kl", "k3", "chi2-token", "chi2-sequence"]) expect(same[`mismatch/${name}`]).toBeCloseTo(0, 15)
  expect(same["mismatch/perplexity-ratio"]).toBe(1)
  for (const [ours, theirs] of [
    [-1e4, 0],
    [0, -1e4],
  ] as const)
    expect(Object.values(mismatchMetrics([ours], [theirs], [0, 1])).every(Number.isFinite)).toBe(true)
})

it("reports large differences in full: only the χ² is bounded", () => {
  const found = mismatchMetrics([-30, -1], [-1, -30], [0, 1, 2])
  const wanted = {
    "mismatch/k3": (Math.exp(-29) + 29 + Math.exp(29) - 29) / 2 - 1,
    "mismatch/training-perplexity": (Math.exp(30) + Math.E) / 2,
    "mismatch/rollout-perplexity": (Math.E + Math.exp(30)) / 2,
    "mismatch/perplexity-ratio": (Math.exp(29) + Math.exp(-29)) / 2,
    "mismatch/chi2-token": (Math.exp(40) + Math.exp(-40)) / 2 - 1,
    "mismatch/chi2-sequence": (Math.exp(40) + Math.exp(-40)) / 2 - 1,
  }
  for (const [name, value] of Object.entries(wanted))
    expect([name, found[name]! / value]).toEqual([name, expect.closeTo(1, 12)])
})

it("rejects columns that do not fit", () => {
  expect(() => mismatchMetrics(trainer, sampler, [0, 2])).toThrow(badArgument(/offsets must not decrease from 0 to 5,/))
})
