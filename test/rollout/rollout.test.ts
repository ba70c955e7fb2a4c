import { describe, expect, it } from "vitest"
import { runEpisode, streamEpisode } from "../../src/rollout/episode.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { Random } from "../../src/util/random.ts"
import { doorsEnvironment } from "./doors.ts"
import { FakePolicy } from "./fake-policy.ts"
import { rolloutSetup, takeDoors, useTokenizer } from "./setup.ts"

const tokenizer = useTokenizer()

describe("a rollout", () => {
  it("plays every task once per member of its group, in order", async () => {
    const setup = rolloutSetup(tokenizer.get())
    const { groups } = await rollout(setup)
    expect(groups.map(({ episodes }) => episodes.length)).toEqual([4, 4, 4, 4])
    for (const [index, group] of groups.entries())
      for (const { steps } of group.episodes)
        expect(steps[0]!.observation.text).toBe(`${setup.tasks[index]!.rooms[0]} 0`)
  })

  it.each([1, 7, 64])(
    "gives the same results with concurrency %i as with 16, and never exceeds it",
    async (concurrency) => {
      const expected = await rollout(rolloutSetup(tokenizer.get()))
      const setup = rolloutSetup(tokenizer.get(), { concurrency })
      expect(await rollout(setup)).toEqual(expected)
      expect(setup.policy.most).toBeLessThanOrEqual(concurrency)
      expect(setup.policy.most).toBeGreaterThanOrEqual(Math.min(concurrency, 2)) // how many more, a busy machine decides
    },
  )

  it("gives each episode the same result as alone", async () => {
    const setup = rolloutSetup(tokenizer.get())
    const { groups } = await rollout(setup)
    const alone = await runEpisode({ ...setup, task: setup.tasks[2]!, random: setup.random.derive(2, 3) })
    expect(groups[2]!.episodes[3]).toEqual(alone)
    const all = groups
      .flatMap(({ episodes }) => episodes)
      .map((episode) => episode.steps.map((step) => step.text).join(""))
    expect(new Set(all).size).toBeGreaterThan(3)
  })

  it("samples every completion with a separate key", async () => {
    const setup = rolloutSetup(tokenizer.get())
    await rollout(setup)
    expect(setup.policy.sampled).toBeGreaterThan(16)
    expect(setup.policy.keys.size).toBe(setup.policy.sampled)
  })

  it("reports every episode that ends", async () => {
    const told: [number, number][] = []
    await rollout(rolloutSetup(tokenizer.get(), { onEpisode: (...progress) => told.push(progress) }))
    expect(told).toEqual(Array.from({ length: 16 }, (_, index) => [index + 1, 16]))
  })

  it("without tasks is empty", async () => {
    expect(await rollout(rolloutSetup(tokenizer.get(), { tasks: [] }))).toEqual({ groups: [], dropped: [] })
  })

  it.each([
    [{ concurrency: 0 }, /concurrency is 0/],
    [{ groupSize: 1.5 }, /groupSize is 1.5/],
    [{ maxSteps: 0 }, /maxSteps is 0/],
    [{ environmentTimeout: Number.NaN }, /environmentTimeout is NaN/],
  ])("rejects %o", async (wrong, message) => {
    await expect(rollout(rolloutSetup(tokenizer.get(), wrong))).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(message),
    })
  })

  it("ends with the policy's error, after every other episode has ended and is disposed", async () => {
    const policy = new FakePolicy(tokenizer.get())
    policy.failure = { at: 20, error: new GigpoError("DEVICE_LOST", "gone") }
    let [started, disposed] = [0, 0]
    const environment = doorsEnvironment({
      dispose: async () => {
        disposed++
      },
    })
    const counted = {
      ...environment,
      start: async (...args: Parameters<typeof environment.start>) => {
        started++
        return await environment.start(...args)
      },
    }
    const setup = rolloutSetup(tokenizer.get(), { policy, environment: counted, tasks: takeDoors(40), concurrency: 8 })
    await expect(rollout(setup)).rejects.toMatchObject({ code: "DEVICE_LOST", message: "gone" })
    expect(policy.running).toBe(0)
    expect(disposed).toBe(started)
    expect(started).toBeLessThan(40)
  })

  it("ends with the error of a callback that throws", async () => {
    const onEpisode = (done: number) => {
      if (done === 5) throw new Error("display broke")
    }
    await expect(rollout(rolloutSetup(tokenizer.get(), { onEpisode }))).rejects.toThrow("display broke")
  })
})

describe("a task shared by its episodes", () => {
  it("is rejected if one of them changed it", async () => {
    const { start } = doorsEnvironment()
    const environment = doorsEnvironment({
      start: (task, context) => start(Object.assign(task, { turns: 1 }), context),
    })
    await expect(rollout(rolloutSetup(tokenizer.get(), { environment }))).rejects.toMatchObject({
      code: "BAD_ENVIRONMENT",
      message: expect.stringMatching(/^Task 0 was changed while its episodes were played.*structuredClone/),
    })
  })
})

describe("an episode", () => {
  const first = { rooms: ["red", "blue", "green"], index: 0 } as const
  const alone = (changes = {}) => ({ ...rolloutSetup(tokenizer.get(), changes), task: first, random: new Random(3) })

  it("records observation, completion, action and reward of each step", async () => {
    const { steps, outcome, return: sum, metrics } = await runEpisode(alone())
    expect(outcome).toBe("terminated")
    expect(sum).toBe(steps.reduce((total, step) => total + step.reward, 0))
    expect(metrics).toEqual({ success: Number(sum === 3), rooms: sum })
    expect(steps.at(-1)!.metrics).toEqual(metrics)
    for (const step of steps) {
      expect(tokenizer.get().decode(step.prompt)).toBe(
        `<|im_start|>user\n${step.observation.text}<|im_end|>\n<|im_start|>assistant\n`,
      )
      expect(tokenizer.get().decode(step.completion)).toBe(`${step.text}<|im_end|>`)
      expect(step).toMatchObject({ action: step.text, valid: true, finishReason: "stop" })
      expect(step.logProbs).toHaveLength(step.completion.length)
      expect(step.entropies).toEqual(Float32Array.from(step.completion, (_, place) => 0.5 + place))
    }
  })

  it("records the metrics of each step, even if the environment reuses one object", async () => {
    const metrics = { count: 0 }
    const environment = doorsEnvironment({
      step: async (action, episode) => {
        metrics.count++
        return { ...(await episode.step(action)), terminated: metrics.count === 3, metrics }
      },
    })
    const { steps } = await runEpisode(alone({ environment }))
    expect(steps.map((step) => step.metrics)).toEqual([{ count: 1 }, { count: 2 }, { count: 3 }])
  })

  it("can be iterated step by step, and is disposed when the iteration is left", async () => {
    let disposed = 0
    const environment = doorsEnvironment({
      step: async (_action, episode) => ({ ...(await episode.step("wait")), terminated: false }),
      dispose: async () => {
        disposed++
      },
    })
    let seen = 0
    for await (const step of streamEpisode(alone({ environment }))) {
      expect(step.observation.text).toMatch(/^\w+ \d$/)
      expect(disposed).toBe(0)
      if (++seen === 3) break
    }
    expect([seen, disposed]).toEqual([3, 1])
  })

  it("passes earlier steps to the prompt", async () => {
    const lengths: number[] = []
    const environment = doorsEnvironment({
      step: async (_action, episode) => ({
        ...(await episode.step("wait")),
        terminated: false,
        truncated: lengths.length === 3,
      }),
      prompt: (_task, history, now) => {
        lengths.push(history.length)
        for (const turn of history) expect(turn.action).toBe(turn.completion)
        return [{ role: "user", content: now.text }]
      },
    })
    const { outcome } = await runEpisode(alone({ environment }))
    expect([outcome, lengths]).toEqual(["truncated", [0, 1, 2]])
  })

  it("is truncated after maxSteps if the environment never ends it", async () => {
    const environment = doorsEnvironment({
      step: async (_action, episode) => ({ ...(await episode.step("wait")), terminated: false }),
    })
    const { outcome, steps, error } = await runEpisode(alone({ environment, maxSteps: 12 }))
    expect([outcome, steps.length, error]).toEqual(["truncated", 12, undefined])
  })

  it("ends as overflow if prompt and completion would not fit the model, and keeps its steps", async () => {
    const environment = doorsEnvironment({
      step: async (_action, episode) => ({ ...(await episode.step("wait")), terminated: false }),
      prompt: (_task, history, now) => [{ role: "user", content: now.text + "!".repeat(10 * history.length) }],
    })
    const { tokens: plain } = await tokenizer
      .get()
      .encodeChat(environment.prompt(first, [], { text: "red 0", anchor: "" }))
    const fits = { environment, maxCompletionTokens: 4, maxPositions: plain.length + 20 + 4 }
    const { outcome, steps } = await runEpisode(alone(fits))
    expect([outcome, steps.length]).toEqual(["overflow", 3])
    const never = await runEpisode(alone({ ...fits, maxPositions: plain.length + 3 }))
    expect(never).toMatchObject({ outcome: "overflow", steps: [], return: 0, metrics: {} })
  })
})
