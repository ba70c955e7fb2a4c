import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { type ExpertSetup, type ExpertStep, streamExpert } from "../../src/rollout/expert.ts"
import { Random } from "../../src/util/random.ts"
import { type Changes, type DoorsTask, doorsEnvironment } from "./doors.ts"

const task: DoorsTask = { index: 0, rooms: ["blue", "red", "green"] }

async function play(changes: Changes = {}, options: Partial<ExpertSetup<DoorsTask>> = {}): Promise<ExpertStep[]> {
  const steps: ExpertStep[] = []
  const environment = doorsEnvironment(changes)
  const setup = { environment, task, random: new Random(1), environmentTimeout: 30, maxSteps: 100, ...options }
  for await (const step of streamExpert(setup)) steps.push(step)
  return steps
}

describe("an expert", () => {
  it("plays to the end, with the prompts of the model", async () => {
    let disposed = 0
    const steps = await play({
      dispose: async () => {
        disposed++
      },
    })
    expect(steps).toEqual(
      [
        ["blue 0", "c"],
        ["red 1", "a"],
        ["green 2", "b"],
      ].map(([content, completion]) => ({ messages: [{ role: "user", content }], completion, valid: true })),
    )
    expect(disposed).toBe(1)
  })

  it("can stop without a solution", async () => {
    expect(
      await play({ expert: () => ({ complete: (now) => (now.text === "red 1" ? undefined : "c") }) }),
    ).toHaveLength(1)
    expect(await play({ expert: () => ({ complete: () => undefined }) })).toEqual([])
  })

  it("plays at most maxSteps steps", async () => {
    const step: Changes["step"] = async (_, episode) => ({ ...(await episode.step("wait")), terminated: false })
    expect(await play({ step }, { maxSteps: 5 })).toHaveLength(5)
  })

  it("is required", async () => {
    const { expert: _, ...environment } = doorsEnvironment()
    await expect(play({}, { environment })).rejects.toMatchObject({
      code: "BAD_ENVIRONMENT",
      message: "doors has no expert to learn from; use a pretrained model.",
    })
  })

  it.each<[string, Changes]>([
    ["start", { start: () => Promise.reject(new Error("boom")) }],
    ["step", { step: () => Promise.reject(new Error("boom")) }],
    [
      "the expert",
      {
        expert: () => {
          throw new Error("boom")
        },
      },
    ],
  ])("ends with the environment's error from %s", async (_, changes) => {
    await expect(play(changes)).rejects.toMatchObject({ code: "ENVIRONMENT_FAILED", message: "doors: boom" })
  })

  it("is subject to the time limit and the signal", async () => {
    const step = () => new Promise<never>(() => {})
    await expect(play({ step }, { environmentTimeout: 0.02 })).rejects.toMatchObject({ code: "ENVIRONMENT_TIMEOUT" })
    const controller = new AbortController()
    const playing = play({ step }, { signal: controller.signal })
    await sleep(10)
    const reason = new Error("Ctrl-C")
    controller.abort(reason)
    await expect(playing).rejects.toBe(reason)
  })
})
