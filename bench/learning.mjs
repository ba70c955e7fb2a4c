// GiGPO beside GRPO on Sokoban: from the same warm start, with the same tasks, the same number of episodes and the same
// settings, three seeds each. Writes a table, the curves and the numbers into bench/results/.
//   npm run bench:learning -- [--seeds 3] [--iterations 60]
import { mkdir, rm, writeFile } from "node:fs/promises"
import { parseArgs } from "node:util"
import { clone, evaluate, initialize, NativePolicy, sokoban, Tokenizer, train } from "gigpo"
import { curvesSvg } from "./curves-svg.mjs"
import { describeMachine, stamp } from "./machine.mjs"

const { values } = parseArgs({
  options: { seeds: { type: "string", default: "3" }, iterations: { type: "string", default: "60" } },
})
const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => index + 1)
const iterations = Number(values.iterations)
const every = 10

const environment = sokoban({ rules: false, history: 0, thinking: "off" })
const rollout = { maxReplyTokens: 8 }
const evaluation = { tasks: 256, temperature: 0.4 }
const cloning = {
  tasks: 240,
  epochs: 5,
  batchRows: 16,
  optimizer: { learningRate: 3e-3, warmup: 10, schedule: "cosine" },
}
const options = {
  iterations,
  groups: 48,
  groupSize: 8,
  batchRows: 1024,
  rollout,
  optimizer: { learningRate: 4e-4, warmup: 3, schedule: "cosine" },
}
const estimators = {
  GiGPO: { name: "gigpo", normalization: "none", invalidActionPenalty: 0.1 },
  GRPO: { name: "grpo", normalization: "none", invalidActionPenalty: 0.1 },
}

const folder = "runs/bench-learning"
const started = performance.now()
const say = (text) => console.log(`${((performance.now() - started) / 60_000).toFixed(1).padStart(5)} min  ${text}`)

await rm(folder, { recursive: true, force: true })
const results = Object.keys(estimators).map((name) => ({ name, runs: [] }))
for (const seed of seeds) {
  for (const { name, runs } of results) runs.push(await learn(name, seed))
}
await rm(folder, { recursive: true, force: true })
await writeResults()

/**
 * Success on the held-out levels before training and after every so many iterations: [iteration, share] pairs. The warm start
 * is made anew, to the last bit the same for both estimators, AdamW's moments included.
 */
async function learn(name, seed) {
  await initialize({ directory: folder, environment, options: { seed }, overwrite: true })
  const policy = await NativePolicy.open(folder)
  const tokenizer = await Tokenizer.open(folder)
  for await (const _ of clone({ policy, tokenizer, environment, options: { ...cloning, seed } }));

  const curve = []
  const measure = async (iteration) => {
    const { success } = await evaluate({ policy, tokenizer, environment, rollout, options: evaluation, seed })
    curve.push([iteration, success])
    say(`seed ${seed}, ${name}, iteration ${iteration}: ${(100 * success).toFixed(1)} %`)
  }
  await measure(0)
  const setup = { ...options, estimator: estimators[name], seed }
  for await (const { iteration } of train({ policy, tokenizer, environment, options: setup })) {
    if (iteration % every === 0) await measure(iteration)
  }
  await policy.dispose()
  await tokenizer.dispose()
  return curve
}

async function writeResults() {
  const percent = (share) => (100 * share).toFixed(1)
  const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length
  const header = ["", ...seeds.map((seed) => `seed ${seed}`), "mean"]
  const row = (name, shares) => [name, ...shares.map(percent), percent(mean(shares))]
  const last = (runs) => runs.map((curve) => curve.at(-1)[1])
  // Learning speed: the mean over the whole curve says more than one noisy last point.
  const whole = (runs) => runs.map((curve) => mean(curve.map(([, share]) => share)))
  const rows = [
    row(
      "warm start",
      results[0].runs.map((curve) => curve[0][1]),
    ),
    ...results.map(({ name, runs }) => row(`${name}, after ${iterations} iterations`, last(runs))),
    ...results.map(({ name, runs }) => row(`${name}, mean over the curve`, whole(runs))),
  ]
  const table = [header, header.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n")
  const about = describeMachine()
  const text = `# GiGPO beside GRPO on Sokoban (6 × 6, one box)

Success on 256 held-out levels, in percent, from the same warm start with the same tasks and number of episodes.
${about}

${table}

![curves](./${stamp}-learning.svg)
`
  await mkdir("bench/results", { recursive: true })
  await writeFile(`bench/results/${stamp}-learning.md`, text)
  await writeFile(
    `bench/results/${stamp}-learning.svg`,
    curvesSvg(results, { x: "iteration", y: "success on held-out levels" }),
  )
  const numbers = { about, options, cloning, estimators, evaluation, seeds, results }
  await writeFile(`bench/results/${stamp}-learning.json`, `${JSON.stringify(numbers, null, 1)}\n`)
  console.log(`\n${table}`)
}
