import { describe, expect, it } from "vitest"
import type { Sequence } from "../../src/engine/sequence.ts"
import { groupByTask, layOutSequences, miniBatches, toSequences } from "../../src/training/rows.ts"
import { collectSteps } from "../../src/training/steps.ts"
import { Random } from "../../src/util/random.ts"
import { episode, step } from "./episodes.ts"

const groups = [
  [
    episode([step("a", 0), step("b", 1)], { last: { text: "", anchor: "end" } }),
    episode([step("a", 5)], { outcome: "failed" }),
    episode([step("c", 2)]),
    episode([step("d", 2)], { outcome: "excluded" }),
  ],
  [episode([], { outcome: "overflow" }), episode([step("a", 3, 1, { valid: false })], { outcome: "truncated" })],
]

/** A step of a conversation whose prompt is `before` and something more. */
const said = (before: readonly number[], more: readonly number[], completion: readonly number[], changes = {}) =>
  step("s", 0, 1, {
    prompt: Int32Array.from([...before, ...more]),
    completion: Int32Array.from(completion),
    logProbs: new Float32Array(completion.length).fill(-1),
    ...changes,
  })

describe("the steps of episodes", () => {
  it("are those of all but failed and excluded episodes, with their position and next state", () => {
    expect(collectSteps(groups).map(({ record: _, ...rest }) => rest)).toEqual([
      { task: 0, episode: 0, anchor: "a", nextAnchor: "b", reward: 0, valid: true, length: 2 },
      { task: 0, episode: 0, anchor: "b", nextAnchor: "end", reward: 1, valid: true, length: 2, terminated: true },
      { task: 0, episode: 2, anchor: "c", reward: 2, valid: true, length: 2, terminated: true },
      { task: 1, episode: 1, anchor: "a", reward: 3, valid: false, length: 2, truncated: true },
    ])
    expect(collectSteps([])).toEqual([])
  })

  it("have as next state the next observation of the same agent and conversation", () => {
    const turn = (anchor: string, agent: string, conversation?: string) =>
      step(anchor, 0, 1, { agent, ...(conversation !== undefined && { conversation }) })
    const steps = [turn("a", "x"), turn("b", "y"), turn("c", "x"), turn("d", "x", "apart"), turn("e", "y")]
    const lead = collectSteps([[episode(steps, { last: { text: "", anchor: "end" } })]])
    expect(lead.map(({ nextAnchor }) => nextAnchor)).toEqual(["c", "e", undefined, undefined, "end"])
  })

  it("become rows with their advantages, token by token", () => {
    const steps = collectSteps(groups)
    const rows = toSequences(steps, Float64Array.of(1, -1, 0.5, 0))
    const places = [
      [0, 0],
      [0, 0],
      [0, 1],
      [1, 2],
    ]
    for (const [index, row] of rows.entries()) {
      const { prompt, completion, logProbs } = steps[index]!.record
      const [task, episode] = places[index]!
      const segment = { start: 3, length: 2, step: index, task, episode, logProbs, advantage: [1, -1, 0.5, 0][index] }
      expect({ ...row, tokens: [...row.tokens] }).toEqual({ tokens: [...prompt, ...completion], segments: [segment] })
    }
  })

  it("are adjacent by task", () => {
    const rows = layOutSequences(collectSteps(groups))
    expect(groupByTask(rows).map((group) => group.map(({ segments: [segment] }) => segment!.step))).toEqual([
      [0, 1, 2],
      [3],
    ])
  })
})

describe("a growing conversation", () => {
  const first = [1, 2, 3]
  const second = [...first, 7, 8]
  const steps = () =>
    collectSteps([
      [episode([said(first, [], [7, 8]), said(second, [4, 4], [9]), said([...second, 4, 4, 9], [5], [6])])],
    ])
  const shape = (rows: readonly Sequence[]) =>
    rows.map(({ tokens, segments }) => [[...tokens], segments.map(({ start, length, step }) => [start, length, step])])

  it("is one row with one span per step", () => {
    expect(shape(layOutSequences(steps()))).toEqual([
      [
        [1, 2, 3, 7, 8, 4, 4, 9, 5, 6],
        [
          [3, 2, 0],
          [7, 1, 1],
          [9, 1, 2],
        ],
      ],
    ])
  })

  it("keeps skipped steps as context, except at its end", () => {
    const advantages = Float64Array.of(1, 2, 3)
    const left = toSequences(steps(), { advantages, skip: Uint8Array.of(0, 1, 0) })
    expect(shape(left)).toEqual([
      [
        [1, 2, 3, 7, 8, 4, 4, 9, 5, 6],
        [
          [3, 2, 0],
          [9, 1, 2],
        ],
      ],
    ])
    expect(toSequences(steps(), { advantages, skip: Uint8Array.of(1, 1, 1) })).toEqual([])
    expect(shape(toSequences(steps(), { advantages, skip: Uint8Array.of(0, 0, 1) }))[0]![0]).toEqual([
      1, 2, 3, 7, 8, 4, 4, 9,
    ])
  })

  it("ends where a token differs, or where another conversation, episode or image begins", () => {
    const other = said([...first, 7, 9], [4], [5])
    expect(shape(layOutSequences(collectSteps([[episode([said(first, [], [7, 8]), other])]])))).toHaveLength(2)
    const apart = said(second, [4], [5], { conversation: "title" })
    const back = said(second, [6], [7])
    const rows = layOutSequences(collectSteps([[episode([said(first, [], [7, 8]), apart, back])]]))
    expect(shape(rows)).toEqual([
      [
        [1, 2, 3, 7, 8, 6, 7],
        [
          [3, 2, 0],
          [6, 1, 2],
        ],
      ],
      [[1, 2, 3, 7, 8, 4, 5], [[6, 1, 1]]],
    ])
    const members = [episode([said(first, [], [7, 8])]), episode([said(second, [4], [5])])]
    expect(layOutSequences(collectSteps([members]))).toHaveLength(2)
    const picture = said(second, [4], [5], { attachments: ["a picture"] })
    expect(layOutSequences(collectSteps([[episode([said(first, [], [7, 8]), picture])]]))).toHaveLength(2)
  })

  it("contains token columns, weights and clip factors of an estimator", () => {
    const [row] = toSequences(steps(), {
      advantages: [Float32Array.of(1, 2), Float32Array.of(3), Float32Array.of(4)],
      weights: [Float32Array.of(0.5, 1), Float32Array.of(1), Float32Array.of(2)],
      clipScale: Float64Array.of(1, 2, 3),
    })
    expect(row!.segments.map(({ advantage, weights, clipScale }) => ({ advantage, weights, clipScale }))).toEqual([
      { advantage: Float32Array.of(1, 2), weights: Float32Array.of(0.5, 1), clipScale: 1 },
      { advantage: Float32Array.of(3), weights: Float32Array.of(1), clipScale: 2 },
      { advantage: Float32Array.of(4), weights: Float32Array.of(2), clipScale: 3 },
    ])
  })
})

describe("batches", () => {
  const numbered = (...lengths: number[]) => {
    let next = 0
    return lengths.map((length) => Array.from({ length }, () => ({ number: next++, segments: [0] })))
  }

  it.each([
    [[4, 4, 4], 4, [4, 4, 4]],
    [[4, 4, 4], 100, [12]],
    [[3, 3, 3], 4, [3, 3, 3]],
    [[5, 5], 4, [3, 4, 3]],
    [[7], 2, [2, 2, 1, 2]],
    [[1, 1], 1, [1, 1]],
  ])("of groups of %j rows and at most %i rows have %j", (lengths, size, expected) => {
    const made = miniBatches(numbered(...lengths), size, new Random(1))
    expect(made.map((batch) => batch.length)).toEqual(expected)
  })

  it("contain every row once, with groups in random order", () => {
    const groups = numbered(3, 5, 2, 8, 1, 4)
    const orders = new Set<string>()
    for (let seed = 0; seed < 20; seed++) {
      const made = miniBatches(groups, 6, new Random(seed))
      expect(made.flat().toSorted((a, b) => a.number - b.number)).toEqual(groups.flat())
      for (const batch of made) expect([5, 6]).toContain(batch.length)
      // Whole groups follow each other.
      for (const group of groups) {
        const at = made.flat().indexOf(group[0]!)
        expect(made.flat().slice(at, at + group.length)).toEqual(group)
      }
      expect(miniBatches(groups, 6, new Random(seed))).toEqual(made)
      orders.add(
        made
          .flat()
          .map(({ number }) => number)
          .join(),
      )
    }
    expect(orders.size).toBeGreaterThan(15)
  })

  it("count steps instead of rows, and split no row", () => {
    const row = (steps: number) => ({ segments: Array.from({ length: steps }) })
    const sizes = (...rows: number[]) =>
      miniBatches([rows.map(row)], 4, new Random(1)).map((batch) => batch.map(({ segments }) => segments.length))
    expect(sizes(2, 2, 2, 2)).toEqual([
      [2, 2],
      [2, 2],
    ])
    expect(sizes(8, 1, 1)).toEqual([[8], [1, 1]])
    expect(miniBatches([[row(8), row(1)]], 4, new Random(1), () => 1)).toHaveLength(1)
  })
})
