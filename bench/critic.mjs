// Cost of PPO's critic: iterations of bench/sokoban.yaml with and without it, in alternating turns.
//   npm run bench -- critic
import { rm } from "node:fs/promises"
import { loadConfig } from "../modules/cli/config/resolve.js"
import { openEnvironment } from "../modules/entries/index.js"
import { describeMachine, markdownTable, median, writeResult } from "./machine.mjs"
import { learn, warmStart } from "./warm-start.mjs"

const folder = "runs/bench-critic"
const config = await loadConfig("bench/sokoban.yaml")
const { name, ...options } = config.environment
const environment = await openEnvironment(name, options)
await warmStart(folder, { environment }, config, 1, () => {})
const common = { ...config.training, iterations: 4, evaluation: { every: 0 }, seed: 1 }
const recipes = {
  "GRPO, which skips steps of no advantage": { estimator: { name: "grpo" } },
  "REINFORCE++, which learns from every step": { estimator: { name: "reinforce-plus-plus" } },
  "PPO, with a critic": { estimator: { name: "ppo" }, critic: { optimizer: { learningRate: 3e-4 } } },
}
const parts = ["rollout", "advantage", "update", "iteration"]
const times = Object.fromEntries(Object.keys(recipes).map((title) => [title, []]))
for (let round = 0; round < 3; round++) {
  for (const [title, recipe] of Object.entries(recipes)) {
    const reports = await learn(folder, { environment }, { ...common, ...recipe }, undefined, {
      critic: "critic" in recipe,
    })
    // The first iteration is not counted, because it allocates memory.
    times[title].push(...reports.slice(1).map(({ metrics }) => metrics))
  }
}
const seconds = (title, part) => median(times[title].map((metrics) => metrics[`time/${part}`]))
const titles = Object.keys(recipes)
const [withCritic] = titles.slice(-1)
const ratios = titles.slice(0, -1).map((without) => {
  const shares = parts.map((part) => (seconds(withCritic, part) / seconds(without, part)).toFixed(2))
  return [`PPO over ${without.split(",")[0]}`, ...shares]
})
const rows = titles.map((title) => [title, ...parts.map((part) => seconds(title, part).toFixed(3))])
await writeResult(
  "critic",
  `# The cost of a critic

Seconds of each part of an iteration of bench/sokoban.yaml (medians of nine, in turns); the critic's predictions count to "advantage".
${describeMachine()}

${markdownTable([["", ...parts], ...rows, ...ratios])}`,
)
await rm(folder, { recursive: true })
