// Trains an agent end to end on this machine's CPU, from nothing: a small model with its own tokenizer learns a little of
// Sokoban from a solver, and the rest by GiGPO from its own games. `npm start` runs it; about five minutes on two cores.
import { rmSync } from "node:fs"
import { clone, evaluate, initialize, NativePolicy, Run, sokoban, Tokenizer, train } from "gigpo"

const environment = sokoban({ rules: false, history: 0, thinking: "off" })
const rollout = { maxReplyTokens: 8 }
const seed = 1
const started = performance.now()
const say = (text) => console.log(`${((performance.now() - started) / 1000).toFixed(0).padStart(4)} s  ${text}`)
const percent = (share) => `${(100 * share).toFixed(1)} %`

const model = "runs/sokoban-start/model"
rmSync("runs/sokoban-start", { recursive: true, force: true })
const { parameters, vocabularySize } = await initialize({ directory: model, environment, options: { seed } })
const policy = await NativePolicy.open(model)
const tokenizer = await Tokenizer.open(model)
say(`a new model: ${(parameters / 1e6).toFixed(2)} M parameters, ${vocabularySize} tokens`)

const imitation = {
  seed,
  tasks: 240,
  epochs: 5,
  batchRows: 16,
  optimizer: { learningRate: 3e-3, warmup: 0.16, schedule: "cosine" },
}
for await (const { epoch, epochs, rows, loss } of clone({ policy, tokenizer, environment, ...imitation })) {
  say(`cloning the solver, pass ${epoch} of ${epochs} over ${rows} moves: loss ${loss.toFixed(3)}`)
}

const solved = async () => {
  const { success, successInterval, episodes } = await evaluate({ policy, tokenizer, environment, rollout, seed })
  return {
    success,
    text: `solves ${percent(success)} of ${episodes} held-out levels (95 %: ${successInterval.map(percent).join(" to ")})`,
  }
}
const before = await solved()
say(`before reinforcement learning it ${before.text}`)

const options = {
  seed,
  iterations: 60,
  groups: 48,
  groupSize: 8,
  batchRows: 1024,
  rollout,
  estimator: { name: "gigpo", normalization: "none", invalidActionPenalty: 0.1 },
  optimizer: { learningRate: 4e-4, warmup: 3, schedule: "cosine" },
}
const run = await Run.open("runs/sokoban-start/run", options)
for await (const { iteration, metrics } of train({ policy, tokenizer, environment, ...options, run })) {
  const { "episode/success": success, "episode/return": reward, "policy/entropy": entropy } = metrics
  say(`iteration ${iteration}: ${percent(success)} solved, return ${reward.toFixed(2)}, entropy ${entropy.toFixed(3)}`)
}

const after = await solved()
say(`before reinforcement learning it ${before.text}`)
say(`after it ${after.text}: ${(100 * (after.success - before.success)).toFixed(1)} points more`)
say(`the trained model: ${await run.saveModel({ store: policy.store, files: tokenizer.files })}`)
await run.close()
