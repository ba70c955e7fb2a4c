import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import type { IterationReport } from "../../../src/runs/report.ts"
import { Run } from "../../../src/runs/run.ts"
import type { RunObserver } from "../../../src/training/observers.ts"
import { train } from "../../../src/training/train.ts"
import { scalarsOf } from "../../../src/view/data/scalars.ts"
import { mlflow, mlflowObserver } from "../../../src/view/sinks/mlflow.ts"
import { MlflowClient } from "../../../src/view/sinks/mlflow-client.ts"
import { tableSetup } from "../../training/table-setup.ts"
import { reportsOf } from "../run-folder.ts"
import { FakeMlflow, type Trouble } from "./fake-mlflow.ts"

let folder: string
let server: FakeMlflow
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-mlflow-"))
  server = await FakeMlflow.start()
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await server[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

/** Without pauses worth waiting for. */
const observer = (): RunObserver =>
  mlflowObserver(new MlflowClient({ url: server.url, backoff: 0.001 }), { experiment: "doors" })

it("sends its password over http to this machine alone, unless it may", () => {
  vi.stubEnv("MLFLOW_TRACKING_TOKEN", "mlflow-secret")
  const refused = expect.objectContaining({
    code: "BAD_ARGUMENT",
    message: expect.not.stringContaining("mlflow-secret"),
  })
  expect(() => mlflow({ url: "http://mlflow:5000" })).toThrow(refused)
  for (const options of [
    { url: "http://mlflow:5000", plainHttp: true },
    { url: "https://mlflow:5000" },
    { url: "http://localhost:5000" },
  ])
    expect(() => mlflow(options)).not.toThrow()
  vi.stubEnv("MLFLOW_TRACKING_TOKEN", "")
  expect(() => mlflow({ url: "http://mlflow:5000" })).not.toThrow()
})

/** What the newest run of the server has, as an iteration's numbers by name. */
function received(): Record<number, Record<string, unknown>> {
  const steps: Record<number, Record<string, unknown>> = {}
  for (const [key, values] of server.runs.at(-1)!.metrics)
    for (const { step, value } of values) {
      steps[step] ??= {}
      expect(steps[step], `${key} twice at ${step}`).not.toHaveProperty([key])
      steps[step][key] = value
    }
  return steps
}

const told = (reports: readonly IterationReport[]) =>
  Object.fromEntries(reports.map((report) => [report.iteration, scalarsOf(report)]))

const logged = async (): Promise<IterationReport[]> =>
  (await readFile(join(folder, "run", "metrics.jsonl"), "utf8"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

async function observe(reports: readonly IterationReport[], to: RunObserver = observer()): Promise<void> {
  await to.start!({ iteration: 0, iterations: reports.length })
  for (const report of reports) await to.report!(report)
  await to.end!({ iteration: reports.length })
}

const part = async (iterations: number, changes: object = {}, opening: object = { resume: "auto" }) => {
  const warnings: string[] = []
  const options = { iterations, evaluation: { every: 2, tasks: 3 } }
  await using run = await Run.open(join(folder, "run"), { seed: 0 }, opening)
  const training = train({
    ...{ ...tableSetup(), ...options, run, observers: [observer()] },
    ...{ onWarning: (warning: string) => warnings.push(warning), ...changes },
  })
  const error = await training.then(
    () => undefined,
    (thrown) => thrown,
  )
  return { warnings, error }
}

describe("a run in MLflow", () => {
  it("has every number of every report, its settings, and how it ended", async () => {
    expect(await part(5)).toEqual({ warnings: [], error: undefined })
    expect(received()).toEqual(told(await logged()))
    const [run] = server.runs
    expect(run).toMatchObject({ name: "run", status: "FINISHED", experiment: server.experiments.get("doors") })
    expect(Object.fromEntries(run!.params)).toMatchObject({ seed: "0" })
    const { timestamp } = run!.metrics.get("episode/return")!.at(-1)!
    expect(new Date(timestamp).toISOString()).toBe((await logged()).at(-1)!.time)
  })

  it("continues where the run continues, without a number twice, even where it was not told for a while", async () => {
    const controller = new AbortController()
    const onProgress = ({ stage }: { stage: string }) => stage === "evaluation" && controller.abort()
    const stopped = await part(3, { signal: controller.signal, onProgress, evaluation: { every: 3, tasks: 3 } })
    expect(stopped.error).toMatchObject({ name: "AbortError" })
    expect(server.runs[0]).toMatchObject({ status: "KILLED" })
    const evaluation = { every: 3, tasks: 3 }
    await part(3, { evaluation })
    await part(5, { evaluation, observers: [] })
    await part(7, { evaluation })
    expect(server.runs.map(({ status }) => status)).toEqual(["FINISHED"])
    expect(received()).toEqual(told(await logged()))
  })

  it("is another where the run is another, or where MLflow has it no more", async () => {
    await part(2)
    await part(2, {}, { overwrite: true })
    server.runs[1]!.deleted = true
    await part(4)
    server.runs[2]!.deleted = true
    server.runs.splice(2, 1)
    await part(5)
    expect(server.runs).toHaveLength(3)
    expect(received()).toEqual(told(await logged()))
  })

  it("is the old one again where the run that was to replace it saved nothing", async () => {
    await part(2)
    const controller = new AbortController()
    const onProgress = ({ stage }: { stage: string }) => stage === "rollout" && controller.abort()
    await part(2, { signal: controller.signal, onProgress }, { overwrite: true })
    await part(3)
    expect(server.runs.map(({ status }) => status)).toEqual(["FINISHED", "KILLED"])
    server.runs.pop()
    expect(received()).toEqual(told(await logged()))
  })

  it("says that it failed, and that it ended early", async () => {
    let asked = 0
    const estimator = () => {
      if (++asked === 2) throw new Error("no credit")
      return { advantages: new Float64Array(0) }
    }
    const failing = await part(3, { estimator })
    expect(failing.error).toBeDefined()
    expect(server.runs.at(-1)).toMatchObject({ status: "FAILED" })
    await part(9, { stop: { kl: 1e-9 } }, { overwrite: true })
    expect((await logged()).at(-1)!.stopped).toBeDefined()
    expect(server.runs.at(-1)).toMatchObject({ status: "FINISHED" })
  })

  it("has a run of its own of each run that one observer is told of", async () => {
    const to = observer()
    await observe(reportsOf(3), to)
    await observe(reportsOf(2), to)
    expect(server.runs.map(({ status }) => status)).toEqual(["FINISHED", "FINISHED"])
    expect(received()).toEqual(told(reportsOf(2)))
  })
})

describe("what MLflow would reject", () => {
  it("comes in another form: names, long values, what is not finite", async () => {
    const metrics = { "é/../x": 1, "/a//": 2, "b:c?": 3, nan: Number.NaN, far: Number.NEGATIVE_INFINITY }
    const to = observer()
    const config = {
      gigpo: "0",
      long: "é".repeat(7000),
      pair: "x".repeat(5998) + "😀".repeat(9),
      "a b": { "c:d": [1] },
    }
    await to.start!({ iteration: 0, iterations: 1, config })
    await to.report!({ iteration: 1, metrics: { ...metrics, ["n".repeat(300)]: 4 } })
    await to.end!({ iteration: 1 })
    const names = ["_/_/x", "_/a/_/_", "b_c_", "nan", "far", "n".repeat(250)]
    expect(Object.keys(received()[1]!)).toEqual(names)
    expect(received()[1]).toMatchObject({ nan: "NaN", far: "-Infinity" })
    const params = server.runs[0]!.params
    expect([params.get("long")!.length, params.get("a b.c_d")]).toEqual([6000, "[1]"])
    expect(params.get("pair")!.slice(5997)).toBe("x…")
  })

  it("is sent in parts of a thousand metrics and a hundred parameters", async () => {
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, at]))
    const to = observer()
    await to.start!({ iteration: 0, iterations: 1, config: { gigpo: "0", ...many(249) } })
    await to.report!({ iteration: 1, metrics: many(2500) })
    await to.end!({ iteration: 1 })
    expect([server.runs[0]!.params.size, server.runs[0]!.metrics.size]).toEqual([250, 2500])
    expect(server.calls.filter((call) => call === "runs/log-batch")).toHaveLength(6)
  })
})

describe("a server in trouble", () => {
  const passing: Trouble[] = [
    "break",
    { status: 503 },
    { status: 429, headers: { "retry-after": "0" } },
    { status: 500 },
  ]

  it("is asked again, at any call", async () => {
    const reports = reportsOf(2)
    const calls = ["get-by-name", "experiments/create", "runs/create", "log-batch", "runs/update"].length
    const to = observer()
    server.troubles.push(...passing)
    await to.start!({ iteration: 0, iterations: 2 })
    await server.heard(calls + passing.length - 2)
    server.troubles.push(...passing)
    await to.report!(reports[0]!)
    await server.heard(calls + 2 * passing.length - 1)
    await to.report!(reports[1]!)
    await to.end!({ iteration: 2 })
    expect(received()).toEqual(told(reports))
  })

  it("says so where it stays away, and is told all once it is back", async () => {
    server.troubles.push(...Array<Trouble>(5).fill({ status: 500 }))
    const [first, ...others] = reportsOf(4)
    const to = observer()
    await to.start!({ iteration: 0, iterations: 4 })
    await vi.waitFor(() => expect(() => to.report!(first!)).toThrow(/MLflow answered .* 500: so to say/))
    for (const report of others) await to.report!(report)
    await to.end!({ iteration: 4 })
    expect(received()).toEqual(told([first!, ...others]))
    expect(server.runs[0]).toMatchObject({ status: "FINISHED" })
  })

  it("that is none is one warning", async () => {
    const url = server.url
    await server[Symbol.asyncDispose]()
    const onWarning = vi.fn()
    const to = mlflowObserver(new MlflowClient({ url, backoff: 0.001 }), { experiment: "doors" })
    expect(await train({ ...tableSetup(), observers: [to], onWarning })).toHaveLength(3)
    const reason = new RegExp(`The MLflow server at ${url} cannot be reached \\(ECONNREFUSED\\)`)
    expect(onWarning.mock.calls).toEqual([[expect.stringMatching(reason)]])
    server = await FakeMlflow.start()
  })

  it("that rejects a batch gets the next all the same", async () => {
    const reports = reportsOf(3)
    const to = observer()
    await to.start!({ iteration: 0, iterations: 3 })
    await server.heard(3)
    server.troubles.push({ status: 400 })
    await to.report!(reports[0]!)
    await vi.waitFor(() => expect(() => to.report!(reports[1]!)).toThrow(/400: so to say/))
    await to.report!(reports[2]!)
    await to.end!({ iteration: 3 })
    expect(Object.keys(received())).toEqual(["2", "3"])
  })

  it("that rejects parameters, or goes away while they come, has one run all the same", async () => {
    const reports = reportsOf(3)
    const to = observer()
    const run = { directory: folder, config: { gigpo: "0", seed: 1 } }
    await to.start!({ iteration: 0, iterations: 3, ...run })
    await server.heard(3)
    server.troubles.push(...Array<Trouble>(5).fill({ status: 500 }))
    await vi.waitFor(() => expect(() => to.report!(reports[0]!)).toThrow(/500: so to say/))
    server.troubles.push({ status: 400 })
    await vi.waitFor(() => expect(() => to.report!(reports[1]!)).toThrow(/400: so to say/))
    await to.report!(reports[2]!)
    await to.end!({ iteration: 3 })
    expect(server.runs).toHaveLength(1)
    expect(received()).toEqual(told(reports))
  })
})

describe("the way in", () => {
  const through = async (environment: Record<string, string>, wanted: string) => {
    await using guarded = await FakeMlflow.start(wanted)
    for (const [name, value] of Object.entries({ MLFLOW_TRACKING_URI: `${guarded.url}/`, ...environment }))
      vi.stubEnv(name, value)
    await observe(reportsOf(1), mlflow({ experiment: "doors", runName: "one" }))
    expect(guarded.runs[0]).toMatchObject({ name: "one", status: "FINISHED" })
  }

  it("is what MLflow's own clients take from the environment", async () => {
    await through({ MLFLOW_TRACKING_TOKEN: "secret" }, "Bearer secret")
    const [name, password] = ["me", "pass:wörd"]
    const both = { MLFLOW_TRACKING_USERNAME: name, MLFLOW_TRACKING_PASSWORD: password }
    await through(both, `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`)
    await expect(through({ MLFLOW_TRACKING_PASSWORD: "" }, "Bearer other")).rejects.toThrow(
      /401: You are not authenticated.*Set MLFLOW_TRACKING_TOKEN/,
    )
  })

  it.each([
    [{}, /MLFLOW_TRACKING_URI, must be the http or https address/],
    [{ url: "file:///tmp" }, /url must be the http or https address/],
    [{ url: "http://me:secret@host" }, /without a name or password/],
    [{ url: "http://host", experiments: "x" }, /experiments/],
  ])("is rejected as %j", (options, message) => {
    vi.stubEnv("MLFLOW_TRACKING_URI", "")
    expect(() => mlflow(options as never)).toThrow(message)
  })
})
