// What a new user does with an installed package, in this order: package-journey.mjs, and then by the command line train, resume, evaluate,
// export, serve, look at the dashboard, adapt a pretrained model, and play an environment that needs SQLite. Each step throws an error if it
// does not do what the documentation says.
import { copyFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { root } from "./package-user.mjs"

/** The command line, relative to a project. */
export const cli = "node_modules/gigpo/dist/cli/launch.cjs"
/** Programs that are copied to the project, by their names there. */
const programs = { "journey.mjs": "scripts/package-journey.mjs", "guess.mjs": "test/cli/guess.mjs" }
/** Sizes with which an iteration takes seconds, even in an emulated processor. */
const small = { groups: 4, groupSize: 4, stepsPerUpdate: 64, "evaluation.tasks": 16 }
const sets = (values) => Object.entries(values).flatMap(([key, value]) => ["--set", `${key}=${value}`])
const training = (values) =>
  sets(Object.fromEntries(Object.entries(values).map(([key, value]) => [`training.${key}`, value])))

/** Own environment, own agent, pretrained model, resume, worker thread, require. `model` is a file of a pretrained model, or undefined. */
export function journey(runtime, model) {
  for (const [name, source] of Object.entries(programs)) copyFileSync(join(root, source), join(runtime.project, name))
  const started = performance.now()
  const report = JSON.parse(runtime.run("journey.mjs", ...(model ? [model] : [])))
  const { required, environment, agent, worker, pretrained } = report
  const returns = [...agent, ...(model ? pretrained : [])]
  const holds =
    required &&
    environment.iterations === 3 &&
    environment.success > 0 &&
    worker.success >= 0 &&
    returns.every((one) => one >= 0)
  if (!holds) throw new Error(`The journey ended with ${JSON.stringify(report)}.`)
  console.log(`  journey in ${seconds(started)}: ${JSON.stringify(report)}`)
}

function seconds(started) {
  return `${((performance.now() - started) / 1000).toFixed(1)} s`
}

/** Initializes, trains, resumes, evaluates and exports a small model, and prints the output of the evaluation. */
export function train(gigpo) {
  const started = performance.now()
  const shape = { hiddenSize: 32, layers: 1, heads: 2, vocabularySize: 300 }
  const set = [
    ...sets(Object.fromEntries(Object.entries(shape).map(([key, value]) => [`initialModel.${key}`, value]))),
    ...training({ ...small, iterations: 3, checkpointEvery: 2 }),
    ...sets({ "sft.tasks": 16, "sft.epochs": 1 }),
  ]
  gigpo("init", "sokoban", "demo", ...set)
  gigpo("sft", "demo/config.yaml", "--out", "demo/cloned")
  const cloned = ["train", "demo/config.yaml", ...sets({ model: "demo/cloned" })]
  gigpo(...cloned)
  gigpo(...cloned, ...training({ iterations: 4 }), "--resume")
  const evaluated = gigpo("evaluate", "demo/config.yaml", "--model", "demo/run/model")
  gigpo("export", "demo/run", "--as", "csv", "--out", "demo/metrics.csv")
  gigpo("report", "demo/run", "--out", "demo/report.html")
  console.log(`  trained in ${seconds(started)}:`)
  for (const line of evaluated.trimEnd().split(/\r?\n/)) console.log(`    ${line}`)
}

/** Trains an adapter of a pretrained model, exports the result as GGUF, and serves that. */
export async function pretrained(runtime, model) {
  const started = performance.now()
  const gigpo = (...args) => runtime.run(cli, ...args)
  const set = training({ ...small, groups: 2, groupSize: 2, iterations: 1, "evaluation.tasks": 2 })
  gigpo("init", "number-line", "adapted", "--model", model, ...set, ...sets({ "environment.maxSteps": 3 }))
  gigpo("train", "adapted/config.yaml")
  gigpo("export", "adapted/run", "--as", "gguf", "--out", "adapted.gguf")
  const megabytes = Math.round(statSync(join(runtime.project, "adapted.gguf")).size / 1e6)
  console.log(`  adapted a pretrained model in ${seconds(started)}, exported it as GGUF: ${megabytes} MB`)
  await serve(runtime, "adapted.gguf")
}

/** Serves a model, and asks it as a client of OpenAI's API does. */
export async function serve(runtime, model) {
  await runtime.serve([cli, "serve", model, "--port", "0"], 2, async ([address, key]) => {
    const messages = [{ role: "user", content: "up?" }]
    const response = await fetch(`${address.replace(/\/v1\/?$/, "")}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "policy", messages, max_tokens: 4 }),
    })
    const { usage } = await response.json()
    if (!(usage?.completion_tokens > 0)) throw new Error(`The server answered with ${response.status}.`)
    console.log(`  served ${usage.completion_tokens} tokens of ${model}`)
  })
}

/** Opens the dashboard of a run: the page, and the run as the page reads it. */
export async function view(runtime, folder) {
  await runtime.serve([cli, "view", folder, "--port", "0"], 1, async ([address]) => {
    const { origin, hash } = new URL(address)
    const page = await fetch(origin)
    if (!page.ok || !(await page.text()).includes("<html"))
      throw new Error(`The dashboard answered with ${page.status}.`)
    const headers = { authorization: `Bearer ${hash.split("=")[1]}` }
    const [run] = await (await fetch(`${origin}/api/runs`, { headers })).json()
    if (run?.state !== "done" || run.iteration !== 4) throw new Error(`The dashboard shows ${JSON.stringify(run)}.`)
    console.log(`  the dashboard shows ${run.iteration} iterations`)
  })
}

/** Plays an environment on SQL, which must name the missing package in a Node without SQLite: `better-sqlite3` is not installed here. */
export function playSql(runtime) {
  const [major, minor] = runtime.version.split(".").map(Number)
  const hasSqlite = major > 22 || (major === 22 && minor >= 16)
  const play = [cli, "play", "node_modules/gigpo/examples/sql.yaml", "--expert"]
  if (!hasSqlite) assertRefused(() => runtime.run(...play), "npm install better-sqlite3")
  else if (!/SELECT/i.test(runtime.run(...play))) throw new Error("The expert of sql wrote no statement.")
  console.log(hasSqlite ? "  sql runs on Node's own SQLite" : "  sql names the missing better-sqlite3")
}

function assertRefused(call, reason) {
  try {
    call()
  } catch ({ message }) {
    if (message.includes(reason)) return
    throw new Error(`The error does not say ${reason}: ${message}`)
  }
  throw new Error(`There was no error with ${reason}.`)
}
