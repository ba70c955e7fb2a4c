import { describe, expect, it } from "vitest"
import { groupByAnchor } from "../../src/credit/anchors.ts"
import { toBatch } from "../../src/credit/batch.ts"
import type { Batch, EstimatorContext } from "../../src/credit/estimator.ts"
import { gigpo, gigpoAdvantages } from "../../src/credit/gigpo.ts"
import { normalizer } from "../../src/credit/normalizer.ts"
import { anchorLevels, discountedReturn, type GigpoParts, keyLevels, similarityLevels } from "../../src/credit/parts.ts"
import { Random } from "../../src/util/random.ts"
import { expectClose } from "./close.ts"
import { episode } from "./steps.ts"

const context: EstimatorContext = { progress: { iteration: 0, iterations: 1 }, random: new Random(0) }

const steps = [
  ...episode("t", "a", [
    ["k", 0],
    ["h", 0, false],
    ["g", 8],
  ]),
  ...episode("t", "b", [
    ["k", 0],
    ["h", 0],
    ["m", 0],
  ]),
  ...episode("t", "c", [
    ["x", 0],
    ["h", 4],
  ]),
]
const batch = toBatch(steps)

describe("normalizer", () => {
  const values = Float64Array.of(1, 3, 8, 5, 5, 7, 9)
  const groups = Int32Array.of(0, 0, 0, 1, 1, 2, -1)

  it("divides by the configured deviation", () => {
    const [sample, population] = [Math.sqrt(13), Math.sqrt(26 / 3)]
    expectClose(normalizer({ epsilon: 0 })(values, groups), [-3 / sample, -1 / sample, 4 / sample, 0, 0, 0, 0])
    expectClose(
      normalizer({ std: "population", epsilon: 0.5 })(values, groups),
      [-3, -1, 4, 0, 0, 0, 0].map((x) => x / (population + 0.5)),
    )
    expectClose(normalizer({ std: "none" })(values, groups), [-3, -1, 4, 0, 0, 0, 0])
  })

  it("supports leave-one-out, and keeps a single value on request", () => {
    expectClose(normalizer({ std: "none", leaveOneOut: true })(values, groups), [-4.5, -1.5, 6, 0, 0, 0, 0])
    expectClose(normalizer({ std: "none", singleton: "raw" })(values, groups), [-3, -1, 4, 0, 0, 7, 0])
    expectClose(normalizer({ epsilon: 1, singleton: "raw" })(values, groups).slice(3), [0, 0, 3.5, 0])
  })

  it("gives exactly 0 for equal values under every option", () => {
    const same = new Float64Array(7).fill(0.1 + 0.2)
    for (const std of ["none", "sample", "population"] as const)
      for (const leaveOneOut of [false, true])
        expect([...normalizer({ std, leaveOneOut, epsilon: 0 })(same, new Int32Array(7))]).toEqual(Array(7).fill(0))
  })

  it("rejects invalid options", () => {
    expect(() => normalizer({ std: "batch" as "none" })).toThrow(/std is "batch"; give one of "none", "sample"/)
    expect(() => normalizer({ singleton: "one" as "raw" })).toThrow(/singleton is "one"/)
    expect(() => normalizer({ epsilon: -1 })).toThrow(/epsilon is -1/)
  })
})

describe("GiGPO's parts", () => {
  it("give GiGPO if combined without changes", async () => {
    const own = gigpo({
      signal: discountedReturn(0.9),
      levels: anchorLevels,
      normalize: normalizer(),
      combine: (episodes, [level]) => episodes.map((value, row) => value + 0.5 * level![row]!),
      invalidActionPenalty: 1,
    })
    const { advantages, details, metrics } = await own.estimate(batch, context)
    const wanted = gigpoAdvantages(steps, { gamma: 0.9, omega: 0.5, invalidActionPenalty: 1 })
    expectClose(advantages as Float64Array, wanted.advantages)
    expect(details!.returns).toEqual(wanted.returns)
    expectClose(
      details!.stepAdvantages!,
      wanted.stepAdvantages.map((value) => 0.5 * value),
    )
    expect(metrics!["advantage/step-share"]).toBeCloseTo(wanted.diagnostics.stepShare, 12)
  })

  it("group similar states like the option", async () => {
    const like = [...episode("t", "a", [["a red door", 1]]), ...episode("t", "b", [["a red door!", 0]])]
    const found = await gigpo({ levels: similarityLevels({ threshold: 0.9 }) }).estimate(toBatch(like), context)
    expect(found.advantages).toEqual(gigpoAdvantages(like, { similarity: 0.9 }).advantages)
    expect(() => similarityLevels({ threshold: 2 })).toThrow(/threshold is 2/)
  })

  it("group by any key: a metric, or a function of the step", async () => {
    const told = steps.map((step, row) => ({
      ...step,
      record: {
        observation: { text: "", anchor: step.anchor },
        text: "",
        action: step.anchor === "h" ? "wait" : "go",
        metrics: row === 0 ? {} : { phase: row % 2 },
      },
    }))
    const levelOf = (levels: GigpoParts["levels"]) => levels(toBatch(told), context)[0]!.ids
    expect([...levelOf(keyLevels("phase"))]).toEqual([-1, 0, 1, 0, 1, 0, 1, 0])
    expect([...levelOf(keyLevels(({ action }) => action))]).toEqual([0, 1, 0, 0, 1, 0, 0, 1])
    expect([...levelOf(keyLevels((_, row) => (row < 6 ? undefined : 7)))]).toEqual([-1, -1, -1, -1, -1, -1, 0, 0])
    const { metrics } = await gigpo({ levels: keyLevels("phase") }).estimate(toBatch(told), context)
    expect(metrics).toMatchObject({ "step-group/count": 2 })
    expect(() => keyLevels("stage")(toBatch(told), context)).toThrow(
      /keyLevels: no step has the metric "stage"; there are "phase"/,
    )
    expect(() => keyLevels(() => "all")(batch, context)).toThrow(
      /keyLevels needs completions and actions; give each step/,
    )
  })

  it("compare at several levels, with histories, as HGPO does", async () => {
    /** Steps with equal last `length` anchors; those that have not that many behind them are in no group. */
    const lastAnchors = ({ task, episode: ids, anchors }: Batch, length: number): Int32Array => {
      const seen = new Map<number, string[]>()
      const keys = anchors.map((anchor, row) => {
        const path = [...(seen.get(ids[row]!) ?? []), anchor]
        seen.set(ids[row]!, path)
        return path.length < length ? "" : JSON.stringify(path.slice(-length))
      })
      return groupByAnchor(task, keys).map((id, row) => (keys[row] === "" ? -1 : id))
    }
    const levels: GigpoParts["levels"] = (given) => [
      { ids: lastAnchors(given, 1), weight: 0.25 },
      { ids: lastAnchors(given, 2), weight: 0.75 },
    ]
    const hierarchy = gigpo({
      gamma: 1,
      levels,
      normalize: normalizer({ std: "none" }),
      episode: () => new Float64Array(8),
    })
    const { advantages, details, metrics } = await hierarchy.estimate(batch, context)
    // Returns 8 8 8, 0 0 0, 4 4; after k: a and b; h: all three, after k: a and b.
    expectClose(advantages as Float64Array, [
      0.25 * 4,
      0.25 * 4 + 0.75 * 4,
      0,
      -0.25 * 4,
      -0.25 * 4 - 0.75 * 4,
      0,
      0,
      0,
    ])
    expect(details!.stepGroups).toEqual(batch.anchorGroups)
    expect(metrics).toMatchObject({ "step-group/count": 5, "step-group/singletons": 3 / 8 })
  })

  it("compare several signals, as ReBel does, and replace the episode level", async () => {
    const belief = Float64Array.of(1, 2, 3, 4, 5, 6, 7, 8)
    const estimator = gigpo({
      omega: 0.5,
      normalize: normalizer({ std: "none" }),
      levels: ({ task }) => [{ ids: task }, { ids: task, values: belief }],
      signal: ({ rewards }) => rewards,
      episode: ({ length }) => new Float64Array(length).fill(10),
    })
    const { advantages, details } = await estimator.estimate(batch, context)
    expectClose(
      advantages as Float64Array,
      belief.map((value, row) => 10 + 0.5 * (steps[row]!.reward - 1.5 + value - 4.5)),
    )
    expect(details!.episodeAdvantages).toEqual(new Float64Array(8).fill(10))
  })

  it("include the penalty in the rewards, or subtract it from the scores", async () => {
    const rewards = (penaltyPlacement: "reward" | "step") =>
      gigpo({ signal: (given) => given.rewards, invalidActionPenalty: 1, penaltyPlacement }).estimate(batch, context)
    const [inReward, onRow] = [await rewards("reward"), await rewards("step")]
    expect(inReward.details!.returns![1]).toBe(-1)
    expect(onRow.details!.returns![1]).toBe(0)
    expect(onRow.details!.stepAdvantages).toEqual(inReward.details!.stepAdvantages)
    expect(batch.rewards[1]).toBe(0)
  })

  it("need no anchors that they do not read, with or without a penalty", async () => {
    const bare = toBatch(steps.map(({ anchor: _, ...step }) => step))
    const columns: string[][] = []
    const levels: GigpoParts["levels"] = (given) => {
      columns.push(Object.keys(given))
      return [{ ids: given.task }]
    }
    for (const invalidActionPenalty of [0, 0.1]) {
      const { advantages } = await gigpo({ levels, invalidActionPenalty }).estimate(bare, context)
      expect(advantages).toHaveLength(steps.length)
    }
    // Whoever spreads the batch finds every column in it.
    expect(columns[1]!.sort()).toEqual(columns[0]!.sort())
  })

  it("accept schedules", () => {
    const signal = discountedReturn({ from: 0.5, to: 1 })
    const progress = { iteration: 5, iterations: 10 }
    expect(signal(batch, { ...context, progress })).toEqual(discountedReturn(0.75)(batch, context))
    expect(() => discountedReturn(0)).toThrow(/gamma must be above 0/)
  })

  it.each<[object, RegExp]>([
    [{ signal: discountedReturn(0.9), gamma: 0.9 }, /part signal, which replaces gamma/],
    [{ levels: anchorLevels, similarity: 0.9 }, /part levels, which replaces similarity/],
    [{ combine: (values: Float64Array) => values, omega: 1 }, /part combine, which replaces omega/],
    [{ levels: "anchor" }, /part levels of gigpo is of type string; give a function/],
  ])("reject %j", (given, message) => {
    expect(() => gigpo(given)).toThrow(
      expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) }),
    )
  })
})
