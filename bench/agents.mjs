// Comparison of GiGPO and GRPO with the AI SDK agent of examples/agents (agents on other clients have the same prompts): same model after SFT, same
// tasks, same number of episodes.
//   npm run bench:agents -- [--seeds 3]
import { rm } from "node:fs/promises"
import { parseArgs } from "node:util"
import { describeMachine, instructionSet } from "./machine.mjs"
import { numbersOf } from "./paper/kept.mjs"
import { writeTable } from "./paper/write.mjs"
import { learn, warmStart } from "./warm-start.mjs"

const { values } = parseArgs({ options: { seeds: { type: "string", default: "3" } } })
const [{ agent }, { hastyExpert: expert, shop: environment }, recipe] = await Promise.all(
  ["ai-sdk", "shop", "recipe"].map((name) => import(`../examples/agents/build/${name}.js`)),
)
const { shape, sftOptions, training, heldOut } = recipe
const world = { name: "shop" }
const variants = ["gigpo", "grpo"].map((name) => ({
  name: name === "gigpo" ? "GiGPO" : "GRPO",
  estimator: { ...training.estimator, name },
}))
const folder = "runs/bench-agents"
const where = { about: describeMachine(), instructionSet }
const cells = []
for (let seed = 1; seed <= Number(values.seeds); seed++) {
  const teacher = { environment, agent, expert }
  await warmStart(folder, teacher, { initialModel: shape, sft: sftOptions }, seed, console.log)
  for (const variant of variants) {
    const options = { ...training, estimator: variant.estimator, seed, evaluation: { every: 5, ...heldOut } }
    const reports = await learn(folder, { environment, agent }, options, ({ iteration, evaluation }) => {
      if (evaluation) console.log(`seed ${seed}, ${variant.name}, iteration ${iteration}: ${evaluation.success}`)
    })
    const cell = { world, variant, seed, metrics: ["episode/success"] }
    cells.push({ ...cell, result: numbersOf(cell, { ...where, reports }) })
  }
}
await rm(folder, { recursive: true })
const table = { title: "An agent on the AI SDK: examples/agents", worlds: [world], variants, against: "GRPO" }
console.log(await writeTable("agents", { ...table, again: "`npm run bench:agents`" }, cells, "bench/results"))
