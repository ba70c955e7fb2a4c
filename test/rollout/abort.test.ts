import { getEventListeners } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect, it, vi } from "vitest"
import { runEpisode } from "../../src/rollout/episode.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { doorsEnvironment } from "./doors.ts"
import { expectNo, rolloutSetup, takeDoors, useTokenizer } from "./setup.ts"

const tokenizer = useTokenizer()
const reason = new Error("Ctrl-C")

expectNo("warning")

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length

/** 128 episodes at once that would go on for ever, with the episodes that run counted. */
function endless(dispose: () => Promise<void> = async () => {}) {
  const count = { started: 0, disposed: 0, told: 0 }
  const sound = doorsEnvironment({
    step: async (_action, episode) => {
      await sleep(1)
      return { ...(await episode.step("wait")), terminated: false }
    },
    dispose: async () => {
      count.disposed++
      await dispose()
    },
  })
  const environment: typeof sound = {
    ...sound,
    start(task, context) {
      count.started++
      context.signal.addEventListener("abort", () => count.told++)
      return sound.start(task, context)
    },
  }
  const controller = new AbortController()
  const setup = rolloutSetup(tokenizer.get(), {
    environment,
    tasks: takeDoors(64),
    concurrency: 128,
    maxSteps: 1_000_000,
    signal: controller.signal,
  })
  return { setup, controller, count }
}

describe("an aborted rollout", () => {
  it("rejects with the signal's reason, after all its episodes were aborted and disposed", async () => {
    const { setup, controller, count } = endless()
    const running = rollout(setup)
    await vi.waitFor(() => expect(count).toEqual({ started: 128, disposed: 0, told: 0 }), { timeout: 20_000 })
    expect(listeners(controller.signal)).toBeLessThan(10)
    controller.abort(reason)
    await expect(running).rejects.toBe(reason)
    expect(count).toEqual({ started: 128, disposed: 128, told: 128 })
    expect(setup.policy.running).toBe(0)
    expect(listeners(controller.signal)).toBe(0)
    expect((await rollout({ ...rolloutSetup(tokenizer.get()), policy: setup.policy })).groups).toHaveLength(4)
  })

  it("waits one second for environments to clean up, not their time limit", async () => {
    const { setup, controller } = endless(() => new Promise(() => {}))
    const running = rollout({ ...setup, environmentTimeout: 1e6 })
    await sleep(20)
    controller.abort(reason)
    await expect(running).rejects.toBe(reason)
  })

  it("does not wait for environments that hang in any call", async () => {
    const hang = () => new Promise<never>(() => {})
    for (const changes of [{ start: hang }, { step: hang }, { dispose: hang }]) {
      const controller = new AbortController()
      const environment = doorsEnvironment(changes)
      const setup = rolloutSetup(tokenizer.get(), { environment, signal: controller.signal, environmentTimeout: 1e6 })
      const running = rollout(setup)
      await sleep(20)
      controller.abort(reason)
      await expect(running).rejects.toBe(reason)
      expect(listeners(controller.signal)).toBe(0)
    }
  })

  it("starts nothing if aborted before", async () => {
    const { setup, count } = endless()
    await expect(rollout({ ...setup, signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(count.started).toBe(0)
  })
})

describe("a single episode", () => {
  const alone = (setup: ReturnType<typeof rolloutSetup>) => ({ ...setup, task: takeDoors(1)[0]! })

  it("rejects with the signal's reason if aborted, and leaves no listener on the signal", async () => {
    const hanging = doorsEnvironment({ step: () => new Promise(() => {}) })
    for (const environment of [endless().setup.environment, hanging]) {
      const controller = new AbortController()
      const { signal } = controller
      const running = runEpisode(alone(rolloutSetup(tokenizer.get(), { environment, signal, maxSteps: 1_000_000 })))
      await sleep(20)
      controller.abort(reason)
      await expect(running).rejects.toBe(reason)
      expect(listeners(signal)).toBe(0)
    }
  })

  it("leaves no listener on the signal when it ends", async () => {
    const { signal } = new AbortController()
    const failing = doorsEnvironment({ start: () => Promise.reject(new Error("no server")) })
    for (const environment of [doorsEnvironment(), failing]) {
      await runEpisode(alone(rolloutSetup(tokenizer.get(), { environment, signal })))
      expect(listeners(signal)).toBe(0)
    }
  })
})

describe("a completed rollout", () => {
  it("leaves no listener on the signal, and does not abort it", async () => {
    const { signal } = new AbortController()
    await rollout(rolloutSetup(tokenizer.get(), { tasks: takeDoors(32), concurrency: 128, signal }))
    expect(listeners(signal)).toBe(0)
    expect(signal.aborted).toBe(false)
  })
})
