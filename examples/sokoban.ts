import {
  evaluate,
  initializeModel,
  NativePolicy,
  openEnvironment,
  Run,
  sft,
  Tokenizer,
  type TrainOptions,
  train,
} from "gigpo"

const environment = await openEnvironment("sokoban", {
  size: [5, 5],
  searchDepth: 6,
  rules: false,
  history: 0,
  thinking: "off",
})
const directory = "models/sokoban" // a folder with a pretrained model needs neither initializeModel nor sft
await initializeModel({ directory, environment, overwrite: true })
const policy = await NativePolicy.open(directory)
const tokenizer = await Tokenizer.open(directory)
const agent = { policy, tokenizer, environment }

for await (const { epoch, loss } of sft({ ...agent, tasks: 16, epochs: 5, completionsPerUpdate: 16 }))
  console.log(`SFT on expert demonstrations, epoch ${epoch}: loss ${loss.toFixed(3)}`)
const rollout = { maxCompletionTokens: 8, temperature: 0.6 }
console.log(await evaluate({ ...agent, rollout })) // success: 10 to 35 %

const options: TrainOptions = {
  iterations: 54,
  groups: 48,
  epochs: 2,
  stepsPerUpdate: 1024,
  rollout,
  estimator: { normalization: "none", invalidActionPenalty: 0.1 },
}
const run = await Run.open("runs/sokoban", options, { overwrite: true })
for await (const { iteration, metrics } of train({ ...agent, run, ...options }))
  console.log(`iteration ${iteration}: ${(100 * metrics["episode/success"]!).toFixed(1)} % solved`)
await run.saveModel({ store: policy.store, files: tokenizer.files })
await run.close() // or `await using run = …` from Node 24 on
console.log(await evaluate({ ...agent, rollout })) // success: 75 to 95 %
console.log("Dashboard: npx gigpo view runs/sokoban")
