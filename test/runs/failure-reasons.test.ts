import { describe, expect, it } from "vitest"
import { failuresOf, mergeFailures } from "../../src/runs/failure-reasons.ts"
import { evaluate } from "../../src/training/evaluate.ts"
import { train } from "../../src/training/train.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { episode, step } from "../training/episodes.ts"
import { characters, TablePolicy } from "../training/table-policy.ts"
import { openDoors } from "../training/tiny.ts"

const failed = (message?: string) =>
  episode([], {
    outcome: "failed",
    ...(message !== undefined && { error: new GigpoError("ENVIRONMENT_FAILED", message) }),
  })

describe("the reasons for which episodes failed", () => {
  it("are reported with count and first occurrence, the most frequent first", () => {
    const groups = [
      { task: { seed: 3 }, index: 0, episodes: [failed("doors: late"), episode([step("a", 1)])] },
      {
        task: { seed: 4 },
        index: 1,
        episodes: [failed("doors: no port 8001"), failed("doors: no port 8002"), failed()],
      },
    ]
    expect(failuresOf(groups, "doors")).toEqual({
      failures: [
        { reason: "doors: no port 8001", count: 2, task: '{"seed":4}', environment: "doors" },
        { reason: "doors: late", count: 1, task: '{"seed":3}', environment: "doors" },
        { reason: "it has no error", count: 1, task: '{"seed":4}', environment: "doors" },
      ],
    })
  })

  it("are absent without failures, and at most five, with shortened tasks", () => {
    expect(failuresOf([{ task: 0, index: 0, episodes: [episode([], { outcome: "excluded" })] }], "doors")).toEqual({})
    const episodes = [..."abcdefgh"].map((letter) => failed(letter))
    const { failures } = failuresOf([{ task: "x".repeat(1000), index: 0, episodes }], "doors")
    expect(failures!.map(({ reason }) => reason)).toEqual([..."abcde"])
    expect(failures![0]!.task.length).toBeLessThan(110)
  })

  it("add up", () => {
    const of = (reason: string, count: number, task: string) => ({ reason, count, task, environment: "doors" })
    expect(mergeFailures([of("a 1", 2, "0")], [of("b", 3, "1"), of("a 2", 2, "2")])).toEqual([
      of("a 1", 4, "0"),
      of("b", 3, "1"),
    ])
  })
})

describe("a training with an unreliable environment", () => {
  const setup = () => {
    let started = 0
    const environment = openDoors({
      start: async (task, context) => {
        if (started++ % 4 === 1) throw new Error(`no server ${started}`)
        return await doorsEnvironment().start(task, context)
      },
    })
    return { policy: new TablePolicy(), tokenizer: characters, environment }
  }
  const rollout = { maxCompletionTokens: 2, concurrency: 1 }

  it("reports why, in training and in evaluations", async () => {
    const evaluation = { every: 2, tasks: 4 }
    const reports = await train({ ...setup(), iterations: 2, groups: 2, groupSize: 4, rollout, evaluation })
    const why = { reason: expect.stringMatching(/^doors: no server \d+$/), environment: "doors" }
    const task = expect.stringMatching(/^\{"index":\d/)
    expect(reports[0]).toMatchObject({ evaluation: { failed: 1 / 4, failures: [{ ...why, count: 1, task }] } })
    expect(reports[0]).not.toHaveProperty("failures")
    for (const report of reports.slice(1)) expect(report.failures).toEqual([{ ...why, count: 2, task }])
    expect(await evaluate({ ...setup(), tasks: 4, rollout })).toMatchObject({ failures: [{ ...why, count: 1, task }] })
  })
})
