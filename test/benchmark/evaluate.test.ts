import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Benchmark, openBenchmark } from "../../src/benchmark/benchmark.ts"
import { type EvaluateBenchmarkSetup, evaluateBenchmark } from "../../src/benchmark/evaluate.ts"
import { readEvaluation, writeEvaluation } from "../../src/benchmark/evaluation-file.ts"
import { withTasks } from "../../src/benchmark/fixed-tasks.ts"
import { reportBenchmark } from "../../src/benchmark/report.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { openEnvironment } from "../../src/environment/open-environment.ts"
import { takeTasks } from "../../src/rollout/tasks.ts"
import { wilsonInterval } from "../../src/training/wilson.ts"
import { Random } from "../../src/util/random.ts"
import { FakePolicy } from "../rollout/fake-policy.ts"
import { useTokenizer } from "../rollout/setup.ts"

const tokenizer = useTokenizer()
let folder = ""
let benchmark: Benchmark
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-benchmark-"))
  benchmark = await openBenchmark("cards/number-line@1", { rules: false, completionFormat: "tags", thinking: "off" })
})
afterAll(() => rm(folder, { recursive: true }))

const run = (changes: Partial<EvaluateBenchmarkSetup> = {}) =>
  evaluateBenchmark({
    policy: new FakePolicy(tokenizer.get(), ["<action>+</action>", "<action>-</action>"]),
    tokenizer: tokenizer.get(),
    benchmark,
    repeats: 4,
    ...changes,
    rollout: { maxCompletionTokens: 30, ...changes.rollout },
  })

describe("an evaluation of a benchmark", () => {
  it("plays every task so often, and reports what its file says", async () => {
    const { evaluation, report } = await run({ seed: 5, model: { name: "a" } })
    const { header, episodes } = evaluation
    expect(header).toMatchObject({
      benchmark: "cards/number-line@1",
      tasks: 30,
      repeats: 4,
      seed: 5,
      model: { name: "a" },
    })
    expect(header.digests).toEqual(benchmark.digests)
    expect(header.settings).toMatchObject({ maxCompletionTokens: 30, environment: { maxSteps: 10, rules: false } })
    expect(episodes.map(({ key }) => key)).toEqual(benchmark.tasks.flatMap(({ key }) => [key, key, key, key]))
    const path = join(folder, "evaluation.jsonl")
    await writeEvaluation(path, evaluation)
    const read = await readEvaluation(path)
    expect(read).toEqual(evaluation)
    expect(reportBenchmark(read)).toEqual(report)

    const solved = episodes.filter(({ success }) => success)
    expect(solved.length).toBeGreaterThan(10)
    expect(solved.length).toBeLessThan(110)
    expect(solved.every(({ metrics, outcome }) => metrics.success === 1 && outcome === "terminated")).toBe(true)
    expect(report).toMatchObject({ episodes: 120, failed: 0, success: solved.length / 120, kinds: [] })
    expect(report.passAtK[0]).toBeCloseTo(report.success, 12)
    expect(report.passAtK[3]).toBeGreaterThan(report.success)
    const width = ([low, high]: readonly [number, number]) => high - low
    expect(width(report.successInterval)).toBeGreaterThan(width(wilsonInterval(solved.length, 120)))
    expect(width(report.successInterval)).toBeLessThanOrEqual(width(wilsonInterval(solved.length / 4, 30)))
  })

  it("comes out the same with 1 and 64 episodes in flight, and again; another seed samples otherwise", async () => {
    const { evaluation } = await run({ temperature: 1 })
    for (const concurrency of [1, 64, 64])
      expect((await run({ temperature: 1, rollout: { concurrency } })).evaluation).toEqual(evaluation)
    const { episodes } = (await run({ temperature: 1, seed: 1 })).evaluation
    expect(episodes.map(({ key }) => key)).toEqual(evaluation.episodes.map(({ key }) => key))
    expect(episodes).not.toEqual(evaluation.episodes)
  })

  it("gives a task its random numbers by benchmark and task, whatever the seed, the repeat and the order", async () => {
    const drawn = async (seed: number, concurrency: number, name = benchmark.name) => {
      const numbers = new Map<unknown, number[]>()
      const base = (await openEnvironment("number-line", { rules: false })) as Environment
      const environment = withTasks(
        name,
        {
          ...base,
          start: async (task, context) => {
            numbers.set(task, [...(numbers.get(task) ?? []), context.random.uint32()])
            return await base.start(task, context)
          },
        },
        benchmark.tasks,
      )
      await run({ benchmark: { ...benchmark, environment }, seed, repeats: 3, rollout: { concurrency } })
      return benchmark.tasks.map(({ task }) => numbers.get(task)!)
    }
    const first = await drawn(1, 1)
    expect(first.every((three) => three.length === 3 && new Set(three).size === 1)).toBe(true)
    expect(new Set(first.flat()).size).toBe(benchmark.tasks.length)
    expect(await drawn(2, 8)).toEqual(first)
    expect(await drawn(1, 1, "another@1")).not.toEqual(first)
  })

  it("leaves training in its environment as it is", async () => {
    const base = (await openEnvironment("number-line", {})) as Environment
    const given: Random[] = []
    const start: Environment["start"] = async (task, context) => {
      given.push(context.random)
      return await base.start(task, context)
    }
    const environment = withTasks(benchmark.name, { ...base, start }, benchmark.tasks)
    const draw = (from: Environment) => takeTasks(from, "train", new Random(3), 5)
    expect(draw(environment)).toEqual(draw(base))
    const context = { random: new Random(9), signal: new AbortController().signal }
    for (const task of [...draw(environment), benchmark.tasks[0]!.task]) await environment.start(task, context)
    expect(given.map((random) => random === context.random)).toEqual([true, true, true, true, true, false])
  })

  it("may be played by somebody else, task by task the same", async () => {
    const asked: unknown[] = []
    const { report, evaluation } = await run({
      repeats: 2,
      rollout: { concurrency: 1 },
      agentLoop: async ({ task, member, sample }) => {
        asked.push(task)
        await sample([{ role: "user", content: "go" }])
        return { reward: 3, metrics: { success: member } }
      },
    })
    expect(asked).toEqual(benchmark.tasks.flatMap(({ task }) => [task, task]))
    expect(report).toMatchObject({ success: 0.5, meanReturn: 3, meanSteps: 1, passAtK: [0.5, 1] })
    expect(evaluation.episodes.map(({ success }) => success).slice(0, 3)).toEqual([false, true, false])
    await expect(run({ environment: benchmark.environment } as object)).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringContaining("leave environment out"),
    })
  })

  it("tells of kinds, where those that failed are lost", async () => {
    const small = await openBenchmark("search/worlds@1", { rules: false, thinking: "off" })
    const answers = (task: unknown) => (task as { readonly answers: readonly string[] }).answers[0]
    const first = small.tasks[0]!
    const failing: Benchmark = {
      ...small,
      tasks: small.tasks.slice(0, 8),
      environment: {
        ...small.environment,
        start: async (task, context) => {
          if (answers(task) === answers(first.task)) throw new Error("no more disk")
          return await small.environment.start(task, context)
        },
      },
    }
    const policy = new FakePolicy(tokenizer.get(), [`<answer>${answers(small.tasks[1]!.task)}</answer>`])
    const { report, evaluation } = await run({
      benchmark: failing,
      policy,
      repeats: 2,
      rollout: { maxCompletionTokens: 60 },
    })
    expect(report.failed * report.episodes).toBeGreaterThanOrEqual(2)
    expect(report.failures![0]).toMatchObject({ reason: "search: no more disk" })
    expect(report.kinds).toMatchObject([{ kind: "world-1-hop", tasks: 8, success: report.success }])
    expect(evaluation.episodes.filter(({ success }) => success).every(({ task }) => task > 0)).toBe(true)
    expect(report.success).toBeGreaterThan(0)
  })

  it.each<[RegExp, object]>([
    [/repeats must be an integer from 1/, { repeats: 0 }],
    [/repeets is not an option; did you mean repeats/, { repeets: 2 }],
    [/benchmark/, { benchmark: undefined as never }],
    [/benchmark/, { benchmark: {} as never }],
  ])("is rejected: %s", async (message, changes) => {
    await expect(run(changes)).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(message),
    })
  })
})
