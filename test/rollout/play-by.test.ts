import { describe, expect, it } from "vitest"
import { bareAction, expertCompletions } from "../../src/rollout/choosers.ts"
import { playBy } from "../../src/rollout/play-by.ts"
import { Random } from "../../src/util/random.ts"
import { type Changes, type DoorsTask, doorsEnvironment } from "./doors.ts"

const task: DoorsTask = { index: 0, rooms: ["blue", "red", "green"] }

function setup(changes: Changes = {}, signal?: AbortSignal) {
  const environment = doorsEnvironment(changes)
  return { environment, task, random: new Random(1), environmentTimeout: 30, maxSteps: 5, signal }
}

describe("an episode without a model", () => {
  it("records the selected actions and their results", async () => {
    let disposed = 0
    const { environment, ...rest } = setup({ dispose: async () => void disposed++ })
    const episode = await playBy({ environment, ...rest }, expertCompletions(environment.expert!(task)))
    expect(episode.steps.map(({ observation, text }) => [observation.text, text])).toEqual([
      ["blue 0", "c"],
      ["red 1", "a"],
      ["green 2", "b"],
    ])
    const rewards = episode.steps.map(({ reward }) => reward)
    expect(episode).toMatchObject({ outcome: "terminated", return: rewards.reduce((sum, reward) => sum + reward) })
    expect(episode.metrics).toEqual(episode.steps.at(-1)!.metrics)
    expect(episode.metrics).toHaveProperty("rooms", 3)
    expect(episode.last).toBeDefined()
    expect(disposed).toBe(1)
  })

  it("is truncated after maxSteps, dropped if the selector stops, and failed if the environment throws", async () => {
    const waiting: Changes["step"] = async (_, episode) => ({ ...(await episode.step("wait")), terminated: false })
    const wait = async () => bareAction("wait")
    expect(await playBy(setup({ step: waiting }), wait)).toMatchObject({ outcome: "truncated", steps: { length: 5 } })
    expect(await playBy(setup(), async () => "stopped")).toMatchObject({ outcome: "excluded", steps: [], metrics: {} })
    const boom = () => Promise.reject(new Error("boom"))
    const failed = await playBy(setup({ step: boom }), wait)
    expect(failed).toMatchObject({ outcome: "failed", steps: [], error: { message: expect.stringMatching(/boom/) } })
  })

  it("ends when its signal is aborted", async () => {
    await expect(
      playBy(setup({}, AbortSignal.abort(new Error("enough"))), async () => bareAction("a")),
    ).rejects.toThrow("enough")
  })
})
