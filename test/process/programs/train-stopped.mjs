// Trains, or clones, with a run in code, and sends itself signals: [model, run, JSON with the signals]. Prints the outcome.
import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { sokoban } from "../../../modules/entries/environments/sokoban.js"
import { NativePolicy, Run, sft, Tokenizer, train } from "../../../modules/entries/index.js"

const [model, directory, text] = process.argv.slice(2)
const {
  work = "train",
  signal,
  at,
  iteration: when = 3,
  own,
  off,
  bare,
  again,
  hangs,
  two,
  resume = false,
} = JSON.parse(text)
const environment = sokoban({ rules: false, history: 0, thinking: "off", maxSteps: 3 })
const options = {
  train: {
    ...{ seed: 4, iterations: 6, groups: 2, groupSize: 4, stepsPerUpdate: 12, checkpointEvery: 50 },
    rollout: { maxCompletionTokens: 4 },
    optimizer: { learningRate: 1e-3 },
    evaluation: { every: 2, tasks: 4 },
    guards: { collapse: "off" },
  },
  sft: {
    seed: 4,
    tasks: 8,
    epochs: 6,
    completionsPerUpdate: 4,
    checkpointEvery: 50,
    optimizer: { learningRate: 1e-3 },
  },
}[work]
const heard = []
if (own) process.on(signal, () => heard.push(signal))

const send = () => {
  if (signal && sent++ === 0) process.kill(process.pid, signal)
  if (again) setTimeout(() => process.kill(process.pid, again), 700)
}
let sent = 0

const reached = new Set()
const reach = (place) => {
  if (reached.add(place).size === (two ? 2 : 1)) send()
}

async function one(place) {
  const policy = await NativePolicy.open(model, { threads: 1, device: "cpu" })
  const tokenizer = await Tokenizer.open(model)
  if (hangs) policy.store.checkpoint = async () => await sleep(600_000)
  const run = bare ? undefined : await Run.open(place, options, { resume })
  let done = run?.iteration ?? 0
  const onProgress = ({ stage, done: step }) => {
    if (stage === at && (stage === "sft" ? step >= when : done + 1 >= when)) reach(place)
  }
  const setup = { policy, tokenizer, environment, run, onProgress, ...options, ...(off && { handleSignals: false }) }
  const heardBefore = process.listenerCount(signal ?? "SIGINT")
  for await (const report of work === "train" ? train(setup) : sft(setup)) {
    done = report.iteration ?? report.epoch
    if (at !== "between" || done !== when) continue

    reach(place)
    await sleep(5000) // the program's own work
  }
  const folder = join(place, "final")
  await policy.save(folder, { overwrite: true })
  await run?.close()
  await policy.dispose()
  await tokenizer.dispose()
  const weights = createHash("sha256")
    .update(await readFile(join(folder, "model.safetensors")))
    .digest("hex")
  const log = run && (await readFile(join(place, "metrics.jsonl"), "utf8"))
  const metrics = log?.replaceAll(/"time(\/[^"]*)?":("[^"]*"|[^,}]*),?|,"resumed":true/g, "")
  return { weights, metrics, left: process.listenerCount(signal ?? "SIGINT") - heardBefore }
}

const results = await Promise.all((two ? ["a", "b"] : [""]).map((name) => one(join(directory, name))))
process.stdout.write(JSON.stringify({ results, heard }))
