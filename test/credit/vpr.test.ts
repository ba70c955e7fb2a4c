import { describe, expect, it } from "vitest"
import { vpr } from "../../src/credit/vpr.ts"
import { expectClose } from "./close.ts"
import { advantagesOf, creditOf, deviation, equalEpisodes, expectOrderless, mean, type Told, worlds } from "./worlds.ts"

const scoreOf = ({ metrics }: Told) => metrics.gain

/** Advantages, undefined for a step that is left out. */
function byState(steps: readonly Told[], overBatch: boolean): (number | undefined)[] {
  const groups = steps.map((step) =>
    steps
      .filter((other) => other.task === step.task && other.anchor === step.anchor)
      .flatMap((other) => scoreOf(other) ?? []),
  )
  const distances = steps.map((step, row) => {
    const [score, group] = [scoreOf(step), groups[row]!]
    if (score === undefined || group.every((one) => one === group[0])) return undefined
    const distance = score - mean(group)
    return overBatch ? distance : distance / (deviation(group, "population") + 1e-8)
  })
  if (!overBatch) return distances
  const learned = distances.filter((one) => one !== undefined)
  const [middle, width] = [mean(learned), deviation(learned, "population") + 1e-8]
  return distances.map((one) => (one === undefined ? one : (one - middle) / width))
}

describe("vpr", () => {
  it.each(["group", "batch"] as const)("gives what its definition says, whitened over the %s", async (stdScope) => {
    let left = 0
    for (const steps of worlds) {
      const { advantages, skip, metrics } = await creditOf(vpr({ score: "gain", stdScope }), steps)
      const expected = byState(steps, stdScope === "batch")
      expect([...skip!]).toEqual(expected.map((one) => (one === undefined ? 1 : 0)))
      expectClose(
        advantages as Float64Array,
        expected.map((one) => one ?? 0),
        1e-9,
      )
      expect(metrics!["step-group/skipped"]).toBeCloseTo(skip!.filter((one) => one === 1).length / steps.length, 12)
      left += skip!.filter((one) => one === 1).length
    }
    expect(left).toBeGreaterThan(20)
  })

  it("uses the configured state key, and adds the bonus for success", async () => {
    const steps = worlds[1]!
    const credit = await creditOf(vpr({ state: "kind", bonus: 2, std: "sample", epsilon: 0 }), steps)
    const value = (step: Told) => step.reward + (step.last && step.metrics.success === 1 ? 2 : 0)
    const expected = steps.map((step) => {
      const peers = steps.filter(({ task }) => task === step.task).map(value)
      return new Set(peers).size === 1 ? 0 : (value(step) - mean(peers)) / deviation(peers)
    })
    expectClose(credit.advantages as Float64Array, expected, 1e-9)
  })

  it("compares steps with the same index, or all steps if these are few", async () => {
    for (const minTurns of [1, 4, 9])
      for (const steps of worlds) {
        const expected = steps.map((step) => {
          const same = steps.filter(({ turn }) => turn === step.turn)
          const peers = (same.length >= minTurns ? same : steps).map(({ reward }) => reward)
          const width = deviation(peers, "population")
          return width === 0 ? 0 : (step.reward - mean(peers)) / (width + 1e-8)
        })
        expectClose(await advantagesOf(vpr({ groupBy: "turn", minTurns }), steps), expected, 1e-9)
      }
  })

  it("does not depend on the order of episodes", async () => {
    for (const options of [{ stdScope: "batch" }, { groupBy: "turn" }] as const)
      await expectOrderless(() => vpr(options))
  })

  it("skips states with equal rewards; with comparison by turn, gives exactly 0", async () => {
    for (const reward of [10, 0.1, -3e7]) {
      const { advantages, skip } = await creditOf(vpr({ stdScope: "batch" }), equalEpisodes(reward))
      expect([...skip!]).toEqual(Array(15).fill(1))
      expect([...(advantages as Float64Array)]).toEqual(Array(15).fill(0))
      const byTurn = await creditOf(vpr({ groupBy: "turn" }), equalEpisodes(reward))
      expect([[...(byTurn.advantages as Float64Array)], [...byTurn.skip!]]).toEqual([
        Array(15).fill(0),
        Array(15).fill(0),
      ])
    }
  })

  it("rejects invalid options", async () => {
    expect(() => vpr({ stdScope: "task" as "group" })).toThrow(/vpr: stdScope must be/)
    expect(() => vpr({ whiten: "batch" } as never)).toThrow("vpr: whiten was renamed to stdScope.")
    await expect(advantagesOf(vpr({ score: "oracle" }), worlds[0]!)).rejects.toThrow(
      /vpr: no step has the metric "oracle"/,
    )
    const short = vpr({ score: () => new Float64Array(1) })
    await expect(advantagesOf(short, worlds[0]!)).rejects.toThrow(
      /vpr: its function of the batch must give a Float64Array of/,
    )
  })

  it("compares candidates with the chosen completion, with bonus and penalty", async () => {
    const [prompt, logProbs, completion] = [Int32Array.of(1), Float32Array.of(-1), Int32Array.of(2)]
    const candidate = (score: number, valid = true) => ({
      prompt,
      logProbs,
      completion,
      text: "",
      action: "",
      valid,
      score,
    })
    const step = (score: number, others: readonly ReturnType<typeof candidate>[], success = 0) => ({
      ...{ task: 0, episode: 0, anchor: "s", reward: 9 },
      record: {
        ...{ observation: { text: "", anchor: "s" }, text: "", action: "" },
        ...{ score, metrics: { success } },
        candidates: others,
      },
    })
    const steps = [step(1, [candidate(0), candidate(2, false)]), step(2, [candidate(2)]), step(1, [candidate(0)], 1)]
    const given = { std: "sample", epsilon: 0, bonus: 2, invalidActionPenalty: 1 } as const
    const { advantages, skip, extraSequences, metrics } = await creditOf(vpr(given), steps)
    // 1, 0 and 2 - 1; the last state's 1 + 2 and 0.
    expectClose(advantages as Float64Array, [1 / 3 / Math.sqrt(1 / 3), 0, Math.SQRT1_2], 1e-12)
    expect([...skip!]).toEqual([0, 1, 0])
    const others = extraSequences!.map(({ segments }) => segments[0]!.advantage as number)
    expectClose(others, [-2 / 3 / Math.sqrt(1 / 3), 1 / 3 / Math.sqrt(1 / 3), -Math.SQRT1_2], 1e-12)
    expect(metrics).toEqual({ "step-group/skipped": 1 / 3, "step-group/candidates": 3 })
    const alone = await creditOf(vpr({ groupBy: "state" }), steps)
    expect([alone.extraSequences, [...alone.skip!]]).toEqual([undefined, [1, 1, 1]])
    await expect(creditOf(vpr({ score: "gain" }), steps)).rejects.toThrow(/vpr: score is not used if candidates/)
    expect(() => vpr({ groupBy: "candidates", state: "kind" })).toThrow(/vpr: state is not used/)
  })
})
