import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { Environment, Observation } from "../../src/environment/environment.ts"
import type { IterationReport } from "../../src/runs/report.ts"
import { Run } from "../../src/runs/run.ts"
import type { TrainOptions } from "../../src/training/options.ts"
import { train } from "../../src/training/train.ts"
import { characters, TablePolicy } from "./table-policy.ts"
import { timeless } from "./tiny.ts"

// What a run is worth in the end: which of its states was the best, and when it was enough.

let folder: string
let directory: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-ending-"))
  directory = join(folder, "run")
})
afterEach(() => rm(folder, { recursive: true }))

/** What an evaluation comes to: tasks solved of four, and the reward of each solved one. */
type Score = readonly [solved: number, reward: number]
type Task = { readonly index: number; readonly split: string }

/** Its evaluations come to what is foretold for each iteration; training is a coin. */
function foretold(scores: readonly Score[], completed: number): Environment<Task> {
  let iteration = completed
  return {
    name: "foretold",
    *tasks(split) {
      if (split === "train") iteration++
      for (let index = 0; ; index++) yield { index, split }
    },
    start: async ({ index, split }, { random }) => {
      const seen: Observation = { text: "here", anchor: "here" }
      const [solved, reward] = scores[iteration] ?? [0, 0]
      const won = split === "test" ? index < solved : random.uniform() < 0.5
      const paid = split === "test" ? reward : 1
      const end = { observation: seen, reward: won ? paid : 0, terminated: true, truncated: false }
      return {
        first: seen,
        step: async () => ({ ...end, metrics: { success: Number(won) } }),
        async [Symbol.asyncDispose]() {},
      }
    },
    prompt: (_, __, { text }) => [{ role: "user", content: text }],
    parse: (action) => ({ action, valid: true }),
  }
}

interface Part extends TrainOptions {
  readonly scores: readonly Score[]
  readonly resume?: boolean
  /** Leaves the loop after this iteration. */
  readonly leaveAfter?: number
}

async function part({ scores, resume = false, leaveAfter, ...options }: Part) {
  await using run = await Run.open(directory, {}, { resume })
  const warnings: string[] = []
  const reports: IterationReport[] = []
  const training = train({
    ...{
      policy: new TablePolicy(),
      tokenizer: characters,
      environment: foretold(scores, run.iteration) as Environment,
      run,
    },
    ...{ groups: 2, groupSize: 4, rollout: { maxCompletionTokens: 2 }, guards: { collapse: "off" } },
    ...{ iterations: scores.length - 1, evaluation: { every: 1, tasks: 4 }, checkpointEvery: 100, keepCheckpoints: 1 },
    ...options,
    onWarning: (message) => warnings.push(message),
  })
  for await (const report of training) {
    reports.push(report)
    if (report.iteration === leaveAfter) break
  }
  const checkpoints = (await readdir(join(directory, "checkpoints"))).sort()
  return {
    reports,
    warnings,
    checkpoints,
    best: await run.best(),
    iterations: reports.map(({ iteration }) => iteration),
  }
}

const lines = async () =>
  (await readFile(join(directory, "metrics.jsonl"), "utf8"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as IterationReport)

describe("the checkpoint of the best evaluation", () => {
  const scores: readonly Score[] = [
    [1, 1],
    [2, 1],
    [3, 1],
    [3, 2],
    [1, 9],
    [3, 2],
    [2, 1],
    [0, 1],
  ]

  it("is written at once and never removed; ranked by success, then mean return, then the earliest", async () => {
    const { checkpoints, best } = await part({ scores })
    expect(checkpoints).toEqual(["iteration-3", "iteration-7"])
    expect(best).toMatchObject({
      iteration: 3,
      evaluation: { success: 3 / 4, meanReturn: 6 / 4 },
      directory: join(directory, "checkpoints", "iteration-3"),
    })
  })

  it.each([1, 2, 3, 4, 5, 6])(
    "is the same if the run is stopped after iteration %i and resumed",
    async (leaveAfter) => {
      await part({ scores, leaveAfter })
      const resumed = await part({ scores, resume: true })
      expect(resumed.iterations.at(0)).toBe(leaveAfter + 1)
      expect(resumed.best?.iteration).toBe(3)
      expect(resumed.checkpoints).toEqual(expect.arrayContaining(["iteration-3", "iteration-7"]))
    },
  )

  it("is replaced by a better one", async () => {
    const { checkpoints } = await part({ scores, iterations: 4 })
    expect(checkpoints).toEqual(["iteration-3", "iteration-4"])
  })

  it("does not exist if nothing was better than the initial model", async () => {
    const { checkpoints, best } = await part({
      scores: [
        [2, 1],
        [1, 1],
        [2, 1],
        [0, 1],
      ],
    })
    expect(checkpoints).toEqual(["iteration-3"])
    expect(best).toMatchObject({ iteration: 0 })
    expect(best).not.toHaveProperty("directory")
  })

  it("belongs to this run: evaluations of a fork's parent count only if their weights exist", async () => {
    await part({ scores, leaveAfter: 4 })
    const fork = await Run.open(join(folder, "fork"), {}, { fork: directory })
    const options = {
      iterations: 6,
      groups: 2,
      rollout: { maxCompletionTokens: 2 },
      evaluation: { every: 1, tasks: 4 },
    }
    const environment = foretold(scores, fork.iteration) as Environment
    await train({
      policy: new TablePolicy(),
      tokenizer: characters,
      environment,
      run: fork,
      ...options,
      guards: { collapse: "off" },
    })
    expect(await fork.best()).toMatchObject({
      iteration: 5,
      directory: join(folder, "fork", "checkpoints", "iteration-5"),
    })
    await fork.close()
  })
})

describe("early stopping", () => {
  const flat: readonly Score[] = [
    [1, 1],
    [2, 1],
    [2, 1],
    [1, 1],
    [2, 1],
    [2, 1],
    [2, 1],
  ]

  it("is off by default", async () => {
    const { iterations, reports } = await part({ scores: flat })
    expect(iterations).toEqual([0, 1, 2, 3, 4, 5, 6])
    expect(reports.filter(({ stopped }) => stopped)).toEqual([])
  })

  it("ends a run at a plateau, and the run continues if more is allowed", async () => {
    const first = await part({ scores: flat, stop: { plateau: 2 } })
    expect(first.iterations).toEqual([0, 1, 2, 3])
    expect(first.reports.at(-1)!.stopped).toBe(
      "none of the last 2 evaluations was better than the one after iteration 1 (stop.plateau)",
    )
    expect(first.checkpoints).toEqual(["iteration-1", "iteration-3"])
    const same = await part({ scores: flat, stop: { plateau: 2 }, resume: true })
    expect(same.iterations).toEqual([])
    expect(same.warnings).toEqual([
      expect.stringMatching(
        /^The run has ended early: none of the last 2 evaluations .* Raise this limit to continue\.$/,
      ),
    ])
    const more = await part({ scores: flat, stop: { plateau: 4 }, resume: true })
    expect(more.iterations).toEqual([4, 5])
    const logged = (await lines()).map(timeless)
    await rm(directory, { recursive: true })
    await part({ scores: flat, stop: { plateau: 4 } })
    const { stopped: _, ...third } = logged[3]!
    expect([...logged.slice(0, 3), third, ...logged.slice(4)]).toEqual((await lines()).map(timeless))
  })

  it("after a resume ends in the same iteration", async () => {
    await part({ scores: flat, stop: { plateau: 3 }, leaveAfter: 2 })
    expect((await part({ scores: flat, stop: { plateau: 3 }, resume: true })).iterations).toEqual([3, 4])
  })

  it("ends a run whose KL exceeds a bound, with an additional evaluation", async () => {
    const evaluation = { every: 5, tasks: 4 }
    const learn = { optimizer: { learningRate: 3 }, epochs: 3 }
    const free = await part({ scores: flat, evaluation, ...learn })
    const kls = free.reports.slice(1).map(({ metrics }) => metrics["policy/kl"]!)
    const at = kls.findIndex((kl, i) => i > 0 && kl > Math.max(0, ...kls.slice(0, i)))
    const bound = Math.max(1e-12, ...kls.slice(0, at))
    await rm(directory, { recursive: true })
    const held = await part({ scores: flat, evaluation, ...learn, stop: { kl: bound } })
    const last = held.reports.at(-1)!
    expect(last.iteration).toBeLessThan(6)
    expect(last.metrics["policy/kl"]).toBeGreaterThan(bound)
    expect(last.stopped).toMatch(/^policy\/kl was .* above .* \(stop\.kl\)$/)
    expect(last.evaluation).toBeDefined()
    expect(held.checkpoints).toContain(`iteration-${last.iteration}`)
  })

  it("ends a run after a time limit, counted over resumptions", async () => {
    const none = { scores: flat, evaluation: { every: 0 } }
    const evaluation = { every: 4, tasks: 4 }
    const short = await part({ scores: flat, evaluation, stop: { seconds: 1e-9 } })
    expect(short.reports.at(-1)).toMatchObject({ stopped: expect.stringMatching(/stop\.seconds/), evaluation: {} })
    await rm(directory, { recursive: true })
    expect((await part({ ...none, stop: { seconds: 1e-9 } })).iterations).toEqual([1])
    await rm(directory, { recursive: true })
    await part({ ...none, stop: { seconds: 1e6 }, leaveAfter: 2 })
    // As if it had taken long.
    const old = await lines()
    const long = old.map((line) => ({ ...line, metrics: { ...line.metrics, "time/run": 1000 } }))
    await writeFile(join(directory, "metrics.jsonl"), long.map((line) => `${JSON.stringify(line)}\n`).join(""))
    expect((await part({ ...none, stop: { seconds: 900 }, resume: true })).iterations).toEqual([])
    const more = await part({ ...none, stop: { seconds: 1e6 }, resume: true })
    expect(more.iterations).toEqual([3, 4, 5, 6])
    expect(more.reports.at(-1)!.metrics["time/run"]).toBeGreaterThan(1000)
  })
})
