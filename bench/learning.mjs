// GiGPO beside GRPO in the environments of examples/: from the same warm start, with the same tasks, the same number of episodes and
// the same settings. Writes a table, the curves and the numbers of each into bench/results/.
//   npm run bench:learning -- [environment …] [--seeds 3] [--set training.iterations=20 …]
import { readdirSync } from "node:fs"
import { mkdir, rm, writeFile } from "node:fs/promises"
import { parseArgs } from "node:util"
import { clone, evaluate, initialize, NativePolicy, openEnvironment, Tokenizer, train } from "gigpo"
import { loadConfig } from "../dist/cli/config/resolve.js"
import { curvesSvg } from "./curves-svg.mjs"
import { describeMachine, markdownTable, stamp } from "./machine.mjs"

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seeds: { type: "string", default: "3" }, set: { type: "string", multiple: true, default: [] } },
})
const examples = readdirSync("examples").filter((name) => name.endsWith(".yaml"))
const names = positionals.length > 0 ? positionals : examples.map((name) => name.slice(0, -".yaml".length))
const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => index + 1)
const folder = "runs/bench-learning"
let heldOut = 0 // tasks of the last evaluation: an environment may have fewer than the configuration asks for
const started = performance.now()
const say = (text) => console.log(`${((performance.now() - started) / 60_000).toFixed(1).padStart(5)} min  ${text}`)

for (const name of names) await compare(name, await loadConfig(`examples/${name}.yaml`, values.set))
await rm(folder, { recursive: true, force: true })

async function compare(name, config) {
  const { name: kind, ...options } = config.environment
  const environment = await openEnvironment(kind, options)
  const { gamma: _, omega: __, similarity: ___, ...both } = config.training.estimator
  const estimators = { GiGPO: { ...config.training.estimator, name: "gigpo" }, GRPO: { ...both, name: "grpo" } }
  const results = Object.keys(estimators).map((estimator) => ({ name: estimator, runs: [], minutes: [] }))
  for (const seed of seeds) {
    const warm = `${folder}/${name}-${seed}`
    await warmStart(warm, environment, config, seed)
    for (const { name: estimator, runs, minutes } of results) {
      const began = performance.now()
      const training = { ...config.training, estimator: estimators[estimator], seed }
      runs.push(await learn(warm, environment, training, `${name}, seed ${seed}, ${estimator}`))
      minutes.push((performance.now() - began) / 60_000)
    }
  }
  await writeResults(name, config, results)
}

/** A new model that has learned a little from the expert: what `gigpo init` and `gigpo clone` make. */
async function warmStart(directory, environment, config, seed) {
  const made = `${directory}-new`
  await initialize({ directory: made, environment, options: { ...config.initialize, seed }, overwrite: true })
  const { policy, tokenizer, close } = await openModel(made)
  for await (const { epoch, epochs, loss, rows } of clone({
    policy,
    tokenizer,
    environment,
    ...config.clone,
    seed,
  }))
    say(`cloning, pass ${epoch} of ${epochs} over ${rows} steps: loss ${loss.toFixed(3)}`)
  await rm(directory, { recursive: true, force: true })
  await policy.save(directory, { files: tokenizer.files })
  await close()
}

/** Success on held-out tasks before training and after every so many iterations: [iteration, share] pairs. */
async function learn(directory, environment, options, title) {
  const { policy, tokenizer, close } = await openModel(directory)
  const { iterations, rollout, seed } = options
  const { every, ...evaluation } = options.evaluation
  const curve = []
  const measure = async (iteration) => {
    const { success, episodes } = await evaluate({ policy, tokenizer, environment, rollout, ...evaluation, seed })
    heldOut = episodes
    curve.push([iteration, success])
    say(`${title}, iteration ${iteration}: ${percent(success)} %`)
  }
  await measure(0)
  for await (const { iteration } of train({ policy, tokenizer, environment, ...options, evaluation: {} }))
    if (iteration % every === 0 || iteration === iterations) await measure(iteration)
  await close()
  return curve
}

async function openModel(directory) {
  const policy = await NativePolicy.open(directory)
  const tokenizer = await Tokenizer.open(directory)
  const close = async () => {
    await policy.dispose()
    await tokenizer.dispose()
  }
  return { policy, tokenizer, close }
}

function percent(share) {
  return (100 * share).toFixed(1)
}

async function writeResults(name, config, results) {
  const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length
  const header = ["", ...seeds.map((seed) => `seed ${seed}`), "mean"]
  const row = (title, shares) => [title, ...shares.map(percent), percent(mean(shares))]
  const last = (runs) => runs.map((curve) => curve.at(-1)[1])
  // Learning speed: the mean over the whole curve says more than one noisy last point.
  const whole = (runs) => runs.map((curve) => mean(curve.map(([, share]) => share)))
  const warm = results[0].runs.map((curve) => curve[0][1])
  const table = markdownTable([
    header,
    row("warm start", warm),
    ...results.map(({ name, runs }) => row(`${name}, after ${config.training.iterations} iterations`, last(runs))),
    ...results.map(({ name, runs }) => row(`${name}, mean over the curve`, whole(runs))),
    ...results.map(({ name, minutes }) => [
      `${name}, minutes of training with evaluations`,
      ...[...minutes, mean(minutes)].map((m) => m.toFixed(1)),
    ]),
  ])
  const about = describeMachine()
  const title = `${stamp}-learning-${name}`
  await mkdir("bench/results", { recursive: true })
  await writeFile(
    `bench/results/${title}.md`,
    `# GiGPO beside GRPO: examples/${name}.yaml

Success on ${heldOut} held-out tasks, in percent, from the same warm start with the same tasks and number of episodes.
${about}

${table}

![curves](./${title}.svg)
`,
  )
  const curves = curvesSvg(results, { x: "iteration", y: "success on held-out tasks" })
  await writeFile(`bench/results/${title}.svg`, curves)
  await writeFile(`bench/results/${title}.json`, `${JSON.stringify({ about, config, seeds, results }, null, 1)}\n`)
  console.log(`\n${table}\n`)
}
