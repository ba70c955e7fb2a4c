// Rollouts during updates (`training.maxStaleness: 1`) compared with synchronous ones, on an engine in a separate process: success of five seeds without a
// delay, and wall time with 200 ms before every response. One thread for each model on the server.
//   node bench/staleness.mjs [success] [delay]
import { fork } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { NativePolicy, openEnvironment, RemoteEngine, Tokenizer, train } from "gigpo"
import { describeMachine, markdownTable, median, writeResult } from "./machine.mjs"
import { warmStart } from "./warm-start.mjs"

const key = "tml-gigpo-bench-only"
const base = {
  ...{ groups: 12, groupSize: 8, updatesPerEpoch: 2, rollout: { maxCompletionTokens: 10 } },
  estimator: { normalization: "none", invalidActionPenalty: 1 },
  loss: { clipDual: Number.POSITIVE_INFINITY },
  optimizer: { learningRate: 3e-4 },
  guards: { collapse: "off" },
}
const seeds = [0, 1, 2, 3, 4]
const iterations = 12
const slow = { iterations: 4, groups: 4, updatesPerEpoch: 6 }
const setting =
  "Number line from 0 to 10, at most 15 steps; a model of two layers from scratch after SFT on 60 tasks. The engine is in a separate process and " +
  "trains all weights on one thread."

if (process.env.GIGPO_PIPELINE_SERVER) await serve(JSON.parse(process.env.GIGPO_PIPELINE_SERVER))
else await compare()

/** `gigpo engine` with a delay in milliseconds before each response. */
async function serve({ model, checkpoints, delay }) {
  const { tinkerServer } = await import("../modules/engine-server/tinker-server.js")
  const { listen } = await import("../modules/http/listen.js")
  const one = { device: "cpu", threads: 1 }
  const server = tinkerServer({
    ...{ model: "small", maxPositions: 512, stopTokens: [], key, models: 3, checkpoints },
    open: () => NativePolicy.open(model, one),
    openFrozen: (folder = model) => NativePolicy.open(folder, { ...one, training: false }),
    onError: console.error,
  })
  const answer = async (request, client) => {
    const response = await server.answer(request, client)
    if (delay > 0) await wait(delay)
    return response
  }
  const { url } = await listen(answer, { keys: server.keys, encodings: server.encodings })
  process.send(url)
  process.on("disconnect", () => process.exit())
}

async function compare() {
  const folder = await mkdtemp(join(tmpdir(), "gigpo-staleness-"))
  try {
    const environment = await openEnvironment("number-line", {
      ...{ maxPosition: 10, maxSteps: 15, completionFormat: "tags", thinking: "off", rules: false },
    })
    const model = join(folder, "model")
    const clone = { tasks: 60, epochs: 3, completionsPerUpdate: 16, optimizer: { learningRate: 1e-3 } }
    const shape = { hiddenSize: 64, layers: 2, heads: 4, vocabularySize: 300 }
    await warmStart(model, { environment }, { initialModel: shape, sft: clone }, 0, console.error)
    const tokenizer = await Tokenizer.open(model)
    const bench = { folder, model, tokenizer, environment }
    const parts = { success: fiveSeeds, delay: wallTime }
    const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(parts)
    for (const name of wanted) await parts[name](bench)
    await tokenizer.dispose()
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function withServer({ folder, model }, delay, work) {
  const checkpoints = await mkdtemp(join(folder, "kept-"))
  const env = { ...process.env, GIGPO_PIPELINE_SERVER: JSON.stringify({ model, checkpoints, delay }) }
  const child = fork(new URL(import.meta.url).pathname, { env })
  const [url] = await once(child, "message")
  try {
    return await work(url)
  } finally {
    child.disconnect()
    await once(child, "exit")
  }
}

async function run(url, { model, tokenizer, environment }, options) {
  const policy = await RemoteEngine.open(model, { url, key, rank: 0, model: "small" })
  const { maxStaleness, seed = 0 } = options
  try {
    const reports = []
    let started = performance.now()
    for await (const report of train({ policy, tokenizer, environment, ...base, ...options })) {
      // Probes of the server and the evaluation before the first iteration are not counted.
      reports.push({ ...report, seconds: (performance.now() - started) / 1000 })
      const { iteration, metrics } = report
      console.error(`maxStaleness ${maxStaleness}, seed ${seed}, iteration ${iteration}: ${metrics["episode/success"]}`)
      started = performance.now()
    }
    return reports
  } finally {
    await policy.dispose()
  }
}

async function fiveSeeds(bench) {
  const learned = await withServer(bench, 0, async (url) => {
    const found = []
    for (const seed of seeds)
      for (const maxStaleness of [0, 1])
        found.push({
          ...{ maxStaleness, seed },
          reports: await run(url, bench, {
            iterations,
            seed,
            maxStaleness,
            evaluation: { every: iterations, tasks: 128 },
          }),
        })
    return found
  })
  const successes = (maxStaleness, pick) =>
    learned.filter((one) => one.maxStaleness === maxStaleness).map(({ reports }) => pick(reports).evaluation.success)
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length
  const deviation = (values) => Math.sqrt(mean(values.map((value) => (value - mean(values)) ** 2)))
  const rows = [0, 1].map((maxStaleness) => {
    const after = successes(maxStaleness, (reports) => reports.at(-1))
    const [before] = successes(maxStaleness, (reports) => reports[0])
    return [maxStaleness, ...[before, ...after, mean(after), deviation(after)].map((value) => value.toFixed(2))]
  })
  await writeResult(
    "staleness-success",
    `# Success with rollouts during updates

${setting} ${base.groups} × ${base.groupSize} episodes per iteration. ${describeMachine()}

Success on 128 held-out tasks after ${iterations} iterations of ${base.updates} updates:

${markdownTable([["maxStaleness", "before", ...seeds.map((seed) => `seed ${seed}`), "mean", "deviation"], ...rows])}`,
  )
}

async function wallTime(bench) {
  const timed = await withServer(bench, 200, async (url) => {
    const found = { 0: [], 1: [] }
    for (let turn = 0; turn < 2; turn++)
      for (const maxStaleness of [0, 1])
        found[maxStaleness].push(...(await run(url, bench, { ...slow, maxStaleness })).slice(1))
    return found
  })
  const rows = [0, 1].map((maxStaleness) => {
    const middle = (name) => {
      const values = timed[maxStaleness].flatMap(({ metrics }) => metrics[name] ?? [])
      return values.length > 0 ? median(values).toFixed(1) : ""
    }
    const seconds = median(timed[maxStaleness].map((report) => report.seconds)).toFixed(1)
    return [
      ...[maxStaleness, seconds],
      ...["time/rollout", "time/rollout-wait", "time/update", "rollout/staleness"].map(middle),
    ]
  })
  const columns = ["maxStaleness", "seconds per iteration", "rollout", "wait for the rollout", "updates", "staleness"]
  await writeResult(
    "staleness-delay",
    `# Wall time with rollouts during updates

${setting} ${slow.groups} × ${base.groupSize} episodes and ${slow.updates} updates per iteration. ${describeMachine()}

200 ms before every response; two trainings of each kind with ${slow.iterations} iterations, in turns. Medians in seconds without the first iteration, which has no
earlier updates to run during:

${markdownTable([columns, ...rows])}`,
  )
}
