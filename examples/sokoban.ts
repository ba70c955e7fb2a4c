import {
  clone,
  evaluate,
  initialize,
  NativePolicy,
  openEnvironment,
  Run,
  Tokenizer,
  type TrainOptions,
  train,
} from "gigpo"

const environment = await openEnvironment("sokoban", { rules: false, history: 0, thinking: "off" })
const directory = "models/sokoban" // a Qwen2, Qwen3 or Llama folder from Hugging Face is neither made nor cloned
await initialize({ directory, environment, overwrite: true })
const policy = await NativePolicy.open(directory)
const tokenizer = await Tokenizer.open(directory)
const agent = { policy, tokenizer, environment }

for await (const { epoch, loss } of clone({ ...agent, tasks: 240, epochs: 5, batchRows: 16 }))
  console.log(`cloning the solver, pass ${epoch}: loss ${loss.toFixed(3)}`)
const rollout = { maxReplyTokens: 8 }
console.log(await evaluate({ ...agent, rollout })) // success: 30 to 60 %

const options: TrainOptions = {
  iterations: 60,
  groups: 48,
  batchRows: 1024,
  rollout,
  estimator: { normalization: "none", invalidActionPenalty: 0.1 },
}
const run = await Run.open("runs/sokoban", options, { overwrite: true })
for await (const { iteration, metrics } of train({ ...agent, run, ...options }))
  console.log(`iteration ${iteration}: ${(100 * metrics["episode/success"]!).toFixed(1)} % solved`)
await run.saveModel({ store: policy.store, files: tokenizer.files })
await run.close() // or `await using run = …`, which closes by itself, from Node 24 on
console.log(await evaluate({ ...agent, rollout })) // success: 55 to 85 %
