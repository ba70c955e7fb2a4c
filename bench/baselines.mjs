// Every baseline on Sokoban, from one warm start a seed, with the same tasks and number of episodes. Writes a table, the curves and
// the numbers into bench/results/. What is done already is kept in runs/ and not done again.
//   npm run bench:baselines -- [recipe …] [--seeds 3] [--jobs 2] [--set training.iterations=30 …]
import { fork } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { availableParallelism } from "node:os"
import { parseArgs } from "node:util"
import { openEnvironment } from "gigpo"
import { loadConfig } from "../dist/cli/config/resolve.js"
import { panelsSvg } from "./curves-svg.mjs"
import { describeMachine, markdownTable, stamp } from "./machine.mjs"
import { recipes } from "./recipes.mjs"
import { curveOf, learn, warmStart } from "./warm-start.mjs"

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: "string", default: "3" },
    jobs: { type: "string", default: String(availableParallelism()) },
    set: { type: "string", multiple: true, default: [] },
    one: { type: "boolean", default: false }, // a process of its own: one recipe, one seed
  },
})
const folder = "runs/bench-baselines"
const config = await loadConfig("examples/sokoban.yaml", values.set)
const { name: kind, ...options } = config.environment
const environment = await openEnvironment(kind, options)
const resultOf = (recipe, seed) => `${folder}/${recipe.replaceAll(/[^\w+]+/g, "-")}-${seed}.json`
const warmOf = (seed) => `${folder}/warm-${seed}`

if (values.one) await runOne(positionals[0], Number(positionals[1]))
else await runAll()

async function runAll() {
  const unknown = positionals.find((name) => !Object.hasOwn(recipes, name))
  if (unknown) throw new Error(`There is no recipe ${unknown}; known: ${Object.keys(recipes).join(", ")}.`)
  const names = positionals.length > 0 ? positionals : Object.keys(recipes)
  const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => index + 1)
  await mkdir(folder, { recursive: true })
  for (const seed of seeds)
    if (!existsSync(warmOf(seed))) await warmStart(warmOf(seed), { environment }, config, seed, console.log)
  const open = names
    .flatMap((name) => seeds.map((seed) => [name, seed]))
    .filter(([n, s]) => !existsSync(resultOf(n, s)))
  await Promise.all(Array.from({ length: Number(values.jobs) }, () => work(open)))
  const results = []
  for (const name of names) {
    const runs = await Promise.all(seeds.map(async (seed) => JSON.parse(await readFile(resultOf(name, seed), "utf8"))))
    results.push({ name, runs })
  }
  await writeResults(results, seeds)
}

/** Takes one run after the other; several at once, on one core each, are done sooner than one after the other on all. */
async function work(open) {
  for (let next = open.shift(); next; next = open.shift()) {
    const [name, seed] = next
    const sets = values.set.flatMap((set) => ["--set", set])
    const child = fork(new URL(import.meta.url), [...["--one", name, String(seed)], ...sets])
    const code = await new Promise((resolve) => child.once("exit", resolve))
    if (code !== 0) throw new Error(`${name}, seed ${seed}, ended with ${code}.`)
  }
}

async function runOne(name, seed) {
  const { rollout, loss, ...recipe } = recipes[name]
  const { estimator: _, ...common } = config.training
  const training = { ...common, ...recipe, loss: { ...loss }, rollout: { ...common.rollout, ...rollout }, seed }
  const began = performance.now()
  const reports = await learn(warmOf(seed), { environment }, training, undefined, {
    threads: 1,
    reference: true,
    ...(recipe.critic && { critic: true }),
  })
  const minutes = (performance.now() - began) / 60_000
  const late = reports.slice(-10).map(({ metrics }) => metrics)
  const kept = ["critic/explained-variance", "policy/entropy", "policy/kl", "optimizer/skipped", "loss/kl"]
  const means = kept
    .map((key) => [key, late.map((metrics) => metrics[key]).filter((value) => value !== undefined)])
    .filter(([, found]) => found.length > 0)
    .map(([key, found]) => [key, found.reduce((sum, value) => sum + value, 0) / found.length])
  const result = { curve: curveOf(reports), minutes, late: Object.fromEntries(means) }
  console.log(
    `${name}, seed ${seed}: ${result.curve.map(([, share]) => percent(share)).join(" → ")} %, ${minutes.toFixed(1)} min`,
  )
  await writeFile(resultOf(name, seed), JSON.stringify(result))
}

async function writeResults(results, seeds) {
  const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length
  const first = mean(results.flatMap(({ runs }) => runs.map(({ curve }) => curve[0][1])))
  const rows = results.map(({ name, runs }) => {
    const last = runs.map(({ curve }) => curve.at(-1)[1])
    const whole = mean(runs.map(({ curve }) => mean(curve.map(([, share]) => share))))
    const late = (key) => {
      const found = runs.map((run) => run.late[key]).filter((value) => value !== undefined)
      return found.length === 0 ? "" : mean(found).toFixed(3)
    }
    const explained = late("critic/explained-variance")
    return [name, ...last.map(percent), percent(mean(last)), percent(whole), late("policy/entropy"), explained]
  })
  const header = ["", ...seeds.map((seed) => `seed ${seed}`), "mean", "over the curve", "entropy", "explained variance"]
  const table = markdownTable([header, ...rows])
  const { iterations, evaluation } = config.training
  const title = `${stamp}-baselines`
  const about = describeMachine()
  await mkdir("bench/results", { recursive: true })
  await writeFile(
    `bench/results/${title}.md`,
    `# Every baseline on Sokoban (6 × 6, one box): bench/recipes.mjs

Success on ${evaluation.tasks} held-out levels after ${iterations} iterations, in percent, from the same warm start a seed (${percent(first)} % in the
mean), with the same tasks and number of episodes. The learning rate and the like were chosen for GiGPO and are the same for all
but where bench/recipes.mjs says otherwise, so this shows that each learns and none diverges, not which is best. Entropy (nats a token) and the explained variance of PPO's critic are
means over the last ten iterations. The curves are in percent over iterations, GiGPO's grey behind each.
${about}

${table}

![curves](./${title}.svg)
`,
  )
  const curves = results.map(({ name, runs }) => ({ name, runs: runs.map(({ curve }) => curve) }))
  await writeFile(`bench/results/${title}.svg`, panelsSvg(curves))
  await writeFile(`bench/results/${title}.json`, `${JSON.stringify({ about, config, seeds, results }, null, 1)}\n`)
  console.log(`\n${table}\n`)
}

function percent(share) {
  return (100 * share).toFixed(1)
}
