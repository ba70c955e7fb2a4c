import { expect, it } from "vitest"
import { toBatch } from "../../src/credit/batch.ts"
import { candidateScores, candidateSequences } from "../../src/credit/candidates.ts"
import type { Batch, Credit, EstimatorCandidate } from "../../src/credit/estimator.ts"
import { normalizer } from "../../src/credit/normalizer.ts"

const [prompt, logProbs] = [Int32Array.of(1, 2), Float32Array.of(-1)]
const candidate = (score: number, token = 3, more: Partial<EstimatorCandidate> = {}): EstimatorCandidate => ({
  ...{ prompt, logProbs, completion: Int32Array.of(token), text: "t", action: "t", valid: true, score },
  ...more,
})
const step = (score: number | undefined, others: readonly EstimatorCandidate[] = [], reward = 0) => ({
  ...{ task: 0, episode: 0, anchor: "s", reward },
  record: { observation: { text: "s", anchor: "s" }, text: "t", action: "t", score, candidates: others },
})

/** VPR's state groups: replies to one prompt are compared among themselves, and where all are as good none is learned from. */
function stateGroups(batch: Batch): Credit {
  const { scores, steps, offsets } = candidateScores(batch)
  const advantages = normalizer({ std: "population", epsilon: 1e-8 })(scores, steps)
  const ofStep = (at: number) => advantages.subarray(offsets[at], offsets[at + 1])
  const isLeft = (at: number) => ofStep(at).every((value) => value === 0)
  return {
    advantages: Float64Array.from({ length: batch.length }, (_, at) => ofStep(at)[0]!),
    skip: Uint8Array.from({ length: batch.length }, (_, at) => Number(isLeft(at))),
    extraSequences: candidateSequences(batch, (at) => (isLeft(at) ? undefined : ofStep(at).subarray(1))),
  }
}

it("candidates are compared with the chosen completion, and become rows", () => {
  const batch = toBatch([
    step(1, [candidate(0, 4), candidate(0, 5), candidate(1, 6)]),
    step(2, [candidate(2)]),
    step(undefined, [], 5),
  ])
  const { advantages, skip, extraSequences } = stateGroups(batch)
  const one = expect.closeTo(0.5 / (0.5 + 1e-8), 12)
  const less = expect.closeTo(-0.5 / (0.5 + 1e-8), 12)
  expect([...advantages]).toEqual([one, 0, 0])
  expect([...skip!]).toEqual([0, 1, 1])
  expect(
    extraSequences!.map(({ tokens, segments: [segment] }) => [[...tokens], segment!.start, segment!.advantage]),
  ).toEqual([
    [[1, 2, 4], 2, less],
    [[1, 2, 5], 2, less],
    [[1, 2, 6], 2, one],
  ])
  expect([...candidateScores(batch).scores]).toEqual([1, 0, 0, 1, 2, 2, 5])
})

it("tokens that were not sampled have weight 0, and NaN skips a candidate", () => {
  const forced = { completion: Int32Array.of(3, 4), logProbs: Float32Array.of(-1, 0), forced: Uint8Array.of(0, 1) }
  const batch = toBatch([step(1, [candidate(0, 3, forced), candidate(2)])])
  const rows = candidateSequences(batch, () => [0.5, Number.NaN])
  expect(rows).toHaveLength(1)
  expect(rows[0]!.segments[0]).toMatchObject({ advantage: 0.5, weights: Float32Array.of(1, 0), length: 2 })
})

it("candidates of a step sampled with a hint are off-policy, too", () => {
  const hinted = step(1, [candidate(0)])
  const batch = toBatch([{ ...hinted, record: { ...hinted.record, offPolicy: true } }, step(1, [candidate(2)])])
  const segments = candidateSequences(batch, () => [0.5]).map((row) => row.segments[0]!)
  expect(segments.map(({ offPolicy }) => offPolicy)).toEqual([true, undefined])
})

it("rejects invalid candidates", () => {
  const batch = toBatch([step(1, [candidate(0)])])
  expect(() => candidateSequences(batch, () => [])).toThrow(/step 0 has 1 candidates but 0 advantages/)
  const bare = toBatch([{ task: 0, episode: 0, reward: 1 }])
  expect(() => candidateScores(bare)).toThrow(/give every step its record/)
})
