// What a new user programs with gigpo, in the order of the README: an own environment, an own agent, a pretrained model, a resumed run, a
// worker thread. package-check.mjs copies this program and the environment guess.mjs of the tests to projects, and runs it with each runtime.
// Prints one JSON object.
//
//   node journey.mjs [GGUF file or folder of a pretrained model]
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { isMainThread, parentPort, Worker } from "node:worker_threads"
import { checkEnvironment, evaluate, initializeModel, NativePolicy, Run, sft, Tokenizer, train } from "gigpo"
import { deviceReport } from "gigpo/native"
import guessWith from "./guess.mjs"

const guess = guessWith({ most: 8 })

/** One room, and the door to choose there. The reward is that of the answer, whatever the model knows. */
const doors = {
  name: "doors",
  *tasks(_split, random) {
    for (;;) yield random.shuffled(["red", "blue"])
  },
}
const schema = { type: "object", properties: { door: { enum: ["a", "b"] } }, required: ["door"] }
const response_format = { type: "json_schema", json_schema: { name: "choice", schema } }
async function chooseDoor([room], { openai, model, signal }) {
  const messages = [{ role: "user", content: `You are in the ${room} room. Which door?` }]
  const headers = { authorization: `Bearer ${openai.apiKey}`, "content-type": "application/json" }
  const body = JSON.stringify({ model, messages, response_format })
  const response = await openai.fetch(`${openai.baseURL}/chat/completions`, { method: "POST", headers, body, signal })
  const { choices } = await response.json()
  const success = JSON.parse(choices[0].message.content).door === (room === "red" ? "a" : "b")
  return { reward: success ? 1 : 0, success }
}

const shape = { hiddenSize: 32, layers: 1, heads: 2, vocabularySize: 300 }
const directory = "journey/model"
const rollout = { maxCompletionTokens: 4 }
const small = { groups: 4, groupSize: 4, stepsPerUpdate: 64, rollout, optimizer: { learningRate: 1e-3 } }

/** An own environment: a new model, supervised training, two iterations, and a third after a resume. */
async function trainAndResume() {
  await checkEnvironment(guess)
  await initializeModel({ directory, environment: guess, options: shape })
  const setup = async () => ({
    environment: guess,
    policy: await NativePolicy.open(directory),
    tokenizer: await Tokenizer.open(directory),
  })
  const first = await setup()
  await sft({ ...first, tasks: 16, epochs: 6, completionsPerUpdate: 8, optimizer: { learningRate: 3e-3 } })
  await first.policy.save(directory, { files: first.tokenizer.files, overwrite: true })
  for (const iterations of [2, 3]) {
    const options = { ...small, iterations, checkpointEvery: 1 }
    const run = await Run.open("journey/run", options, { resume: iterations === 3 })
    const { policy, ...rest } = await setup()
    await train({ ...rest, policy, run, ...options })
    await run.close()
    if (iterations === 3) {
      const { success } = await evaluate({ ...rest, policy, rollout, tasks: 32 })
      return { iterations: run.iteration, success }
    }
  }
}

/** An own agent, which calls the endpoint, with a model and an adapter for it. */
async function trainAgent(model, options) {
  const [policy, tokenizer] = [await NativePolicy.open(model, options), await Tokenizer.open(model)]
  const agent = { policy, tokenizer, environment: doors, agent: chooseDoor, rollout: { maxCompletionTokens: 16 } }
  const reports = await train({ ...agent, iterations: 1, groups: 2, groupSize: 4, stepsPerUpdate: 8 })
  return reports.map(({ metrics }) => metrics["episode/return"])
}

/** Opens the model in a worker thread and in this one at the same time. */
async function inWorker() {
  const worker = new Worker(fileURLToPath(import.meta.url))
  const answer = new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject))
  const here = await NativePolicy.open(directory)
  const weights = await answer
  await here.dispose()
  await worker.terminate()
  return weights
}

if (isMainThread) {
  const required = createRequire(import.meta.url)("gigpo")
  const report = {
    required: required.train === train,
    cpu: deviceReport().cpu.instructionSet,
    environment: await trainAndResume(),
    agent: await trainAgent(directory),
    ...(process.argv[2] && { pretrained: await trainAgent(process.argv[2], { lora: { rank: 4 } }) }),
    worker: await inWorker(),
  }
  console.log(JSON.stringify(report))
} else {
  const policy = await NativePolicy.open(directory)
  const tokenizer = await Tokenizer.open(directory)
  const { success } = await evaluate({ environment: guess, policy, tokenizer, rollout, tasks: 4 })
  await policy.dispose()
  parentPort.postMessage({ success })
}
