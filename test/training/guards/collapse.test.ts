import { describe, expect, it } from "vitest"
import { readOptions } from "../../../src/options/read.ts"
import type { Episode } from "../../../src/rollout/episode.ts"
import { CollapseDetector, collapseMetrics } from "../../../src/training/guards/collapse.ts"
import { guardFields } from "../../../src/training/guards/options.ts"
import { repetition } from "../../../src/training/guards/repetition.ts"
import { train } from "../../../src/training/train.ts"
import { atOnce } from "../../../src/util/pace.ts"
import { Random } from "../../../src/util/random.ts"
import { episode, step } from "../episodes.ts"
import { characters, TablePolicy } from "../table-policy.ts"
import { openDoors } from "../tiny.ts"

describe("repetition", () => {
  /** The definition, word for word. */
  const defined = (tokens: Int32Array) => {
    const runs = Array.from({ length: Math.max(tokens.length - 3, 0) }, (_, at) => tokens.slice(at, at + 4).join())
    return runs.length === 0 ? 0 : 1 - new Set(runs).size / runs.length
  }

  it("is the share of 4-grams that occurred before", () => {
    expect(repetition(new Int32Array(100).fill(33))).toBe(96 / 97)
    expect(repetition(Int32Array.from({ length: 100 }, (_, i) => i))).toBe(0)
    expect(repetition(Int32Array.from({ length: 103 }, (_, i) => i % 10))).toBe(0.9)
    expect([0, 3, 4].map((length) => repetition(new Int32Array(length)))).toEqual([0, 0, 0])
  })

  it("is exact for any tokens", () => {
    const random = new Random(5)
    for (let length = 0; length < 300; length += 7) {
      for (const vocabulary of [2, 5, 2 ** 31]) {
        const tokens = Int32Array.from({ length }, () => random.below(vocabulary))
        expect(repetition(tokens)).toBeCloseTo(defined(tokens), 12)
      }
    }
  })
})

const group = (episodes: readonly Episode[]) => ({ task: 0, index: 0, episodes })
const stuck = step("a", 1, 1, { completion: new Int32Array(20).fill(7), valid: false })

describe("metrics of collapse", () => {
  it("cover completions and returns", () => {
    const groups = [
      group([episode([stuck, step("b", 0)]), episode([step("a", 1)])]),
      group([episode([step("a", 1)]), episode([step("a", 2)])]),
      group([episode([step("a", 1)])]),
    ]
    expect(atOnce(collapseMetrics(groups))).toEqual({
      "guard/repetition": 1 / 6,
      "guard/constant": 1 / 2,
    })
  })

  it("exclude failed and excluded episodes, and are absent if nothing is left", () => {
    const lost = [episode([stuck], { outcome: "failed" }), episode([stuck], { outcome: "excluded" })]
    expect(atOnce(collapseMetrics([group(lost)]))).toEqual({})
    expect(atOnce(collapseMetrics([group([...lost, episode([step("a", 1)])])]))).toEqual({
      "guard/repetition": 0,
    })
  })
})

describe("the detector", () => {
  const options = (changes: object = {}) => readOptions("guards", { patience: 3, ...changes }, guardFields)
  const sound = [group([episode([step("a", 1)]), episode([step("a", 2)])])]
  const sick = [group([episode([stuck]), episode([stuck])])]

  it("waits for its patience, warns once per metric, and again after a recovery", () => {
    const detector = new CollapseDetector(options())
    const told = [sick, sick, sick, sick, sound, sick, sick, sick].map(
      (groups) =>
        atOnce(detector.look(groups, { "policy/entropy": 1, "action/valid": Number(groups === sound) })).alarms.length,
    )
    expect(told).toEqual([0, 0, 3, 0, 0, 0, 0, 3])
  })

  it("names the metric, its bound and the advice", () => {
    const detector = new CollapseDetector(options({ patience: 1, minEntropy: 0.25 }))
    const { alarms } = atOnce(detector.look(sick, { "policy/entropy": 0.123456, "action/valid": 0 }))
    expect(alarms).toHaveLength(4)
    expect(alarms[0]).toMatch(
      /repetitive completions is 1 \(guard\/repetition\), above its bound of 0\.5 \(guards\.maxRep.* Lower/,
    )
    expect(alarms[1]).toMatch(
      /entropy .* is 0\.123 .*, below its bound of 0\.25 \(guards\.minEntropy\) .*loss\.entropyWeight/,
    )
    expect(alarms[2]).toMatch(
      /with a valid action is 0 \(action\/valid\), below its bound of 0\.1 \(guards\.minValid\).*gigpo sft/,
    )
    expect(alarms[3]).toMatch(/equal returns.* is 1 \(guard\/constant\), above .* \(guards\.maxConstant\)/)
  })

  it("does not warn exactly at a bound, nor if it is off", () => {
    const edge = options({ patience: 1, maxRepetition: 1, minValid: 0, maxConstant: 1, minEntropy: 1 })
    expect(atOnce(new CollapseDetector(edge).look(sick, { "policy/entropy": 1, "action/valid": 0 })).alarms).toEqual([])
    // A log that was written with guards off has no metrics of the guard: it is not counted after they are turned on.
    const later = new CollapseDetector(options({ patience: 1 }))
    later.recall({ metrics: { "policy/entropy": 0, "action/valid": 0 } })
    expect(atOnce(later.look(sick, { "policy/entropy": 0, "action/valid": 0 })).alarms).toHaveLength(4)
    expect(atOnce(new CollapseDetector(options({ collapse: "off" })).look(sick, {}))).toEqual({
      metrics: {},
      alarms: [],
    })
  })
})

describe("a training that collapses", () => {
  /** Says the same letter, in replies that end nowhere. */
  const setup = (guards: object) => ({
    policy: Object.assign(new TablePolicy(), {
      sample: async () => ({
        tokens: new Int32Array(8).fill(97),
        logProbs: new Float32Array(8).fill(-1),
        finishReason: "length" as const,
      }),
    }),
    tokenizer: characters,
    environment: openDoors(),
    ...{ iterations: 6, groups: 2, groupSize: 2, rollout: { maxCompletionTokens: 8 } },
    guards: { patience: 3, minValid: 0, maxConstant: 1, ...guards },
  })

  it("gets one warning, and reports the metrics of every iteration", async () => {
    const warnings: string[] = []
    const reports = await train({ ...setup({}), onWarning: (message) => warnings.push(message) })
    expect(reports).toHaveLength(6)
    for (const { metrics } of reports)
      expect(metrics).toMatchObject({
        "guard/repetition": 1,
        "guard/constant": 1,
        "policy/entropy": expect.any(Number),
      })
    expect(warnings).toEqual([expect.stringContaining("guard/repetition")])
  })

  it("ends if configured to stop, after the report of the iteration", async () => {
    const seen: number[] = []
    const training = async () => {
      for await (const { iteration } of train(setup({ collapse: "stop" }))) seen.push(iteration)
    }
    await expect(training()).rejects.toMatchObject({
      code: "COLLAPSED",
      message: expect.stringMatching(/^The policy has collapsed by iteration 3\. The share of repetitive/),
    })
    expect(seen).toEqual([1, 2, 3])
  })

  it("has no such metrics if the guard is off", async () => {
    const reports = await train(setup({ collapse: "off" }))
    for (const { metrics } of reports)
      expect(Object.keys(metrics).filter((name) => name.startsWith("guard/"))).toEqual([])
  })
})
