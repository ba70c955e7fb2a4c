// GiGPO beside GRPO in the environments of examples/, and with the agent of examples/agents ("agents"): from the same warm start, with the same tasks, the same number of episodes and
// the same settings. Writes a table, the curves and the numbers of each into bench/results/.
//   npm run bench:learning -- [environment …] [--seeds 3] [--set training.iterations=20 …]
import { readdirSync } from "node:fs"
import { mkdir, rm, writeFile } from "node:fs/promises"
import { parseArgs } from "node:util"
import { openEnvironment } from "gigpo"
import { loadConfig } from "../dist/cli/config/resolve.js"
import { curvesSvg } from "./curves-svg.mjs"
import { describeMachine, markdownTable, stamp } from "./machine.mjs"
import { curveOf, learn, warmStart } from "./warm-start.mjs"

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seeds: { type: "string", default: "3" }, set: { type: "string", multiple: true, default: [] } },
})
const yaml = readdirSync("examples").filter((name) => name.endsWith(".yaml"))
const examples = [...yaml.map((name) => name.slice(0, -".yaml".length)), "agents"]
const names = positionals.length > 0 ? positionals : examples
const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => index + 1)
const folder = "runs/bench-learning"
let heldOut = 0 // tasks of the last evaluation: an environment may have fewer than the configuration asks for
const started = performance.now()
const say = (text) => console.log(`${((performance.now() - started) / 60_000).toFixed(1).padStart(5)} min  ${text}`)

for (const name of names) await compare(name, await (name === "agents" ? agents() : configured(name)))
await rm(folder, { recursive: true, force: true })

async function configured(name) {
  const path = `examples/${name}.yaml`
  const config = await loadConfig(path, values.set)
  const { name: kind, ...options } = config.environment
  const player = { environment: await openEnvironment(kind, options) }
  return { path, config, player, teacher: player }
}

/** The agent on the AI SDK; those on other clients have the same prompts. */
async function agents() {
  const [{ agent }, { hastyExpert: expert, shop: environment }, recipe] = await Promise.all(
    ["ai-sdk", "shop", "recipe"].map((name) => import(`../examples/agents/build/${name}.js`)),
  )
  const player = { environment, agent }
  const { shape, cloning, training, heldOut } = recipe
  const config = { initialize: shape, clone: cloning, training: { ...training, evaluation: { every: 5, ...heldOut } } }
  return { path: "examples/agents/ai-sdk.ts", config, player, teacher: { ...player, expert } }
}

async function compare(name, { path, config, player, teacher }) {
  const { gamma: _, omega: __, similarity: ___, ...both } = config.training.estimator
  const estimators = { GiGPO: { ...config.training.estimator, name: "gigpo" }, GRPO: { ...both, name: "grpo" } }
  const results = Object.keys(estimators).map((estimator) => ({ name: estimator, runs: [], minutes: [] }))
  for (const seed of seeds) {
    const warm = `${folder}/${name}-${seed}`
    await warmStart(warm, teacher, config, seed, say)
    for (const { name: estimator, runs, minutes } of results) {
      const began = performance.now()
      const training = { ...config.training, estimator: estimators[estimator], seed }
      const title = `${name}, seed ${seed}, ${estimator}`
      const reports = await learn(warm, player, training, ({ iteration, evaluation }) => {
        if (!evaluation) return
        heldOut = evaluation.episodes
        say(`${title}, iteration ${iteration}: ${percent(evaluation.success)} %`)
      })
      runs.push(curveOf(reports))
      minutes.push((performance.now() - began) / 60_000)
    }
  }
  await writeResults(name, path, config, results)
}

function percent(share) {
  return (100 * share).toFixed(1)
}

async function writeResults(name, path, config, results) {
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
    `# GiGPO beside GRPO: ${path}

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
