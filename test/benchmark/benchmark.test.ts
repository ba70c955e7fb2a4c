import { describe, expect, it } from "vitest"
import { openBenchmark } from "../../src/benchmark/benchmark.ts"
import { environmentDigest, promptDigest, tasksDigest } from "../../src/benchmark/digest.ts"
import { benchmarkNames, describeBenchmark } from "../../src/benchmark/find.ts"
import { limits, places, retrieverOptions, speech, training, withoutPlaces } from "../../src/benchmark/options.ts"
import { playTasks } from "../../src/benchmark/plays.ts"
import { chooseTasks } from "../../src/benchmark/tasks.ts"
import type { Environment, Observation, StepResult } from "../../src/environment/environment.ts"
import { openEnvironment } from "../../src/environment/open-environment.ts"
import { environmentFields } from "../../src/environment/registry.ts"
import { Random } from "../../src/util/random.ts"

const line = "cards/number-line@1"

describe("a benchmark", () => {
  it("offers its tasks to whoever evaluates, whatever random numbers they draw them with", async () => {
    const benchmark = await openBenchmark(line)
    const tasks = (seed: number) => [...benchmark.environment.tasks("test", new Random(seed))]
    expect(tasks(1)).toEqual(benchmark.tasks.map(({ task }) => task))
    expect(tasks(2)).toEqual(tasks(1))
    expect(benchmark.tasks).toHaveLength(30)
    expect(await openBenchmark(line, {}, { concurrency: 1 })).toMatchObject({
      tasks: benchmark.tasks,
      digests: benchmark.digests,
    })
  })

  it("has one environment, however the agent is spoken to", async () => {
    const usual = await openBenchmark(line)
    const bare = await openBenchmark(line, { rules: false, completionFormat: "tags", history: 3 })
    expect(usual.defaultPrompt).toBe(true)
    expect(bare.defaultPrompt).toBe(false)
    expect(bare.digests.environment).toBe(usual.digests.environment)
    expect(bare.digests.prompt).not.toBe(usual.digests.prompt)
    expect(bare.digests.benchmark).not.toBe(usual.digests.benchmark)
    expect(bare.replaced).toEqual([])
    const read = bare.environment.parse("<think>.</think><action>+</action>", { text: "", anchor: "" })
    expect(read).toEqual({ action: "+", valid: true })
  })

  it("sets the options of its environment, and says which", async () => {
    const given = { boxes: 2, maxSteps: 15, heldOut: "seed", history: 0, rules: false }
    const benchmark = await openBenchmark("sokoban/6x6@1", given)
    expect(benchmark.replaced).toEqual(["boxes", "heldOut"])
    expect(benchmark.options).toMatchObject({ boxes: 1, maxSteps: 15, heldOut: "layout", history: 0, rules: false })
    const { task } = benchmark.tasks[0]! as { task: { room: string } }
    expect(task.room.match(/X/g)).toHaveLength(1)
  })

  it.each([
    [
      "cards/number-lin@1",
      {},
      "BAD_ARGUMENT",
      /no benchmark "cards\/number-lin@1"\. Did you mean cards\/number-line@1\?/,
    ],
    ["households/seen", {}, "BAD_ARGUMENT", /Did you mean households\/seen@1/],
    ["alfworld/seen@1", {}, "BAD_CONFIG", /needs the option data of alfworld/],
    [line, { maxPositon: 3 }, "BAD_CONFIG", /maxPositon is not an option; did you mean maxPosition/],
    ["nowhere.json", {}, "BAD_DATA", /Cannot read nowhere\.json/],
  ])("is rejected: %s", async (name, options, code, message) => {
    await expect(openBenchmark(name, options)).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  })
})

describe("the digest of an environment", () => {
  const digests = async (change: (base: Environment) => Partial<Environment>) => {
    const base = (await openEnvironment("number-line", {})) as Environment
    const environment = { ...base, ...change(base) }
    const tasks = await chooseTasks(environment, { count: 30, distinct: true }, {})
    const plays = await playTasks(environment, tasks, 4)
    const [responses, prompt] = [await environmentDigest(tasks, plays), await promptDigest(environment, plays)]
    return { tasks: await tasksDigest(tasks), environment: responses, prompt }
  }

  /** Steps that answer otherwise. */
  const answering = (change: (result: StepResult) => StepResult) => (base: Environment) => ({
    start: async (...given: Parameters<Environment["start"]>) => {
      const episode = await base.start(...given)
      return { first: episode.first, step: async (action: string) => change(await episode.step(action)) }
    },
  })
  const seeing = (change: Partial<Observation>) =>
    answering((result) => ({ ...result, observation: { ...result.observation, ...change } }))

  it.each<[string, (base: Environment) => Partial<Environment>]>([
    ["a reward", answering((result) => ({ ...result, reward: result.reward === -1 ? -2 : result.reward }))],
    ["an end", answering((result) => ({ ...result, truncated: true }))],
    ["a metric", answering((result) => ({ ...result, metrics: { ...result.metrics, extra: 1 } }))],
    ["an anchor", seeing({ anchor: "one" })],
    ["a text", seeing({ text: "Target: 1\nCurrent: 2" })],
    ["the admissible actions", seeing({ actions: ["+", "-"] })],
  ])("moves with %s", async (_, change) => {
    const [before, after] = [await digests(() => ({})), await digests(change)]
    expect(after.tasks).toBe(before.tasks)
    expect(after.environment).not.toBe(before.environment)
  })

  it("does not move with the prompt, and that of the prompt does, and with what is read", async () => {
    const before = await digests(() => ({}))
    const asked = await digests((base) => ({
      prompt: (...given) => [...base.prompt(...given), { role: "user", content: "Now." }],
    }))
    // Read by nobody but the policy: a reply that no environment of ours gives out.
    const read = await digests((base) => ({
      parse: (completion, now) =>
        completion === "look" ? { action: "still", valid: true } : base.parse(completion, now),
      start: async (...given) => {
        const episode = await base.start(...given)
        const step = (action: string) =>
          episode.step(action === "still" ? base.parse("look", episode.first).action : action)
        return { first: episode.first, step }
      },
    }))
    expect(asked).toEqual({ ...before, prompt: asked.prompt })
    expect(asked.prompt).not.toBe(before.prompt)
    expect(read.prompt).not.toBe(before.prompt)
  })
})

describe("the options of a benchmark", () => {
  it("are of some environment each, and of one kind", () => {
    const all = [...speech, ...places, ...retrieverOptions, ...limits, ...training]
    expect(new Set(all).size).toBe(all.length)
    const known = new Set(Object.values(environmentFields).flatMap((fields) => Object.keys(fields)))
    expect(all.filter((key) => !known.has(key))).toEqual([])
  })

  it("that ship are known to their environments, and no places, nor how the agent is spoken to", async () => {
    for (const name of benchmarkNames) {
      const { environment, options } = await describeBenchmark(name)
      const keys = Object.keys(options)
      expect(keys.filter((key) => !Object.hasOwn(environmentFields[environment]!, key))).toEqual([])
      expect(keys.filter((key) => [...speech, ...places, ...limits].includes(key))).toEqual([])
    }
  })

  it("leave no path in what is hashed", () => {
    const options = { databases: "/a/db", questions: "/a/db/q.json", topk: "/a/db" }
    const json = JSON.stringify({
      id: "/a/db/q.json, question 1",
      file: "/a/db/x/x.sqlite",
      question: "Is /a/db there?",
    })
    expect(JSON.parse(withoutPlaces(json, options))).toEqual({
      id: "<questions>, question 1",
      file: "<databases>/x/x.sqlite",
      question: "Is /a/db there?",
    })
  })
})
