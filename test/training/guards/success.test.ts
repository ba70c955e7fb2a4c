import { describe, expect, it } from "vitest"
import { readOptions } from "../../../src/options/read.ts"
import type { EvaluationReport } from "../../../src/runs/report.ts"
import { CollapseDetector } from "../../../src/training/guards/collapse.ts"
import { guardFields } from "../../../src/training/guards/options.ts"
import { SuccessWatch } from "../../../src/training/guards/success.ts"
import { train } from "../../../src/training/train.ts"
import { atOnce } from "../../../src/util/pace.ts"
import { episode, step } from "../episodes.ts"
import { characters, TablePolicy } from "../table-policy.ts"
import { openDoors } from "../tiny.ts"

describe("lost success", () => {
  /** Which of the iterations warn, each [episodes, how many succeed]. */
  const warned = (iterations: readonly (readonly [number, number])[], least = 0.01) => {
    const watch = new SuccessWatch(least)
    return iterations.flatMap(([count, solved], index) => (watch.add(count, solved) === undefined ? [] : [index]))
  }

  it.each<[string, readonly (readonly [number, number])[], number[]]>([
    [
      "a few percent, then none",
      [
        [128, 6],
        [128, 0],
        [128, 0],
      ],
      [1],
    ],
    ["a few percent of few episodes, then none", [[32, 2], ...Array(10).fill([32, 0])], [3]],
    ["one success by chance", [[32, 1], ...Array(10).fill([32, 0])], [5]],
    [
      "a half, then none",
      [
        [16, 8],
        [16, 0],
      ],
      [1],
    ],
    [
      "success that fades",
      [
        [128, 13],
        [128, 6],
        [128, 2],
        [128, 0],
        [128, 0],
      ],
      [3],
    ],
    [
      "success that comes back, and is lost again",
      [
        [64, 10],
        [64, 0],
        [64, 9],
        [64, 0],
      ],
      [1, 3],
    ],
    ["none at all", Array(50).fill([128, 0]), []],
    [
      "a streak that is no wonder",
      [
        [100, 5],
        [50, 0],
        [50, 1],
        [50, 0],
      ],
      [],
    ],
    ["success that continues", Array(50).fill([128, 6]), []],
  ])("%s", (_, iterations, expected) => {
    expect(warned(iterations)).toEqual(expected)
    expect(warned(iterations, 0)).toEqual([])
  })

  it("reports the number of episodes and the earlier success", () => {
    const watch = new SuccessWatch(0.01)
    watch.add(128, 6)
    expect(watch.unsolved).toBe(0)
    expect(watch.add(128, 0)).toBe(
      "None of the last 128 episodes succeeded, compared with 4.7 % of the 128 episodes before",
    )
    expect(watch.unsolved).toBe(128)
  })
})

describe("the detector", () => {
  const options = (changes: object = {}) => readOptions("guards", changes, guardFields)
  const groups = (count: number, solved: number) => [
    {
      ...{ task: 0, index: 0 },
      episodes: Array.from({ length: count }, (_, i) =>
        episode([step("a", i % 2)], { metrics: { success: Number(i < solved) } }),
      ),
    },
  ]
  const evaluation = (episodes: number, solved: number) =>
    ({ episodes, success: solved / episodes, metrics: { success: solved / episodes } }) as unknown as EvaluationReport

  it("warns about training and evaluations, with advice", () => {
    const detector = new CollapseDetector(options())
    const look = (solved: number) => atOnce(detector.look(groups(128, solved), {}))
    expect(look(6)).toMatchObject({ alarms: [], metrics: { "guard/episodes-since-success": 0 } })
    expect(look(0)).toMatchObject({
      alarms: [
        expect.stringMatching(/None of the last 128 .*4\.7 %.*guard\/episodes-since-success.*learningRate.*gigpo sft/),
      ],
      metrics: { "guard/episodes-since-success": 128 },
    })
    expect([evaluation(256, 12), evaluation(256, 0), evaluation(256, 0)].map((one) => detector.evaluated(one))).toEqual(
      [[], [expect.stringMatching(/^In evaluations: None of the last 256/)], []],
    )
  })

  it("continues after a resume", () => {
    const detector = new CollapseDetector(options())
    detector.recall({ metrics: { "episode/count": 128, "episode/success": 6 / 128 }, evaluation: evaluation(256, 12) })
    expect(atOnce(detector.look(groups(128, 0), {})).alarms).toHaveLength(1)
    expect(detector.evaluated(evaluation(256, 0))).toHaveLength(1)
  })

  it("does not warn if success is not reported, or if it is off", () => {
    const detector = new CollapseDetector(options())
    const untold = [{ task: 0, index: 0, episodes: [episode([step("a", 1)]), episode([step("a", 2)])] }]
    expect(atOnce(detector.look(untold, {})).metrics).not.toHaveProperty("guard/episodes-since-success")
    for (const changes of [{ collapse: "off" }, { lostSuccess: 0 }]) {
      const off = new CollapseDetector(options(changes))
      for (const solved of [6, 0, 0]) expect(atOnce(off.look(groups(128, solved), {})).alarms).toEqual([])
      for (const solved of [12, 0, 0]) expect(off.evaluated(evaluation(256, solved))).toEqual([])
    }
  })
})

it("a run that loses its success gets a warning in its log", async () => {
  let iteration = 0
  const world = openDoors()
  const environment = openDoors({
    start: async (task, context) => {
      const episode = await world.start(task, context)
      return {
        ...episode,
        step: async (action: string) => {
          const result = await episode.step(action)
          return { ...result, metrics: { ...result.metrics, success: iteration === 0 ? 1 : 0 } }
        },
      }
    },
  })
  const warnings: string[] = []
  const setup = {
    ...{ policy: new TablePolicy(), tokenizer: characters, environment },
    ...{
      iterations: 3,
      groups: 8,
      groupSize: 4,
      rollout: { maxCompletionTokens: 8 },
      guards: { maxConstant: 1, minValid: 0 },
    },
    onWarning: (text: string) => warnings.push(text),
  }
  const reports = []
  for await (const report of train(setup)) {
    iteration = report.iteration
    reports.push(report)
  }
  const lost = /None of the last \d+ episodes succeeded, compared with 100 % of the 32 episodes before/
  expect(warnings).toEqual([expect.stringMatching(lost)])
  expect(reports.map(({ warnings }) => warnings?.length ?? 0)).toEqual([0, 1, 0])
  expect(reports.map(({ metrics }) => metrics["guard/episodes-since-success"])).toEqual([0, 32, 64])
})
