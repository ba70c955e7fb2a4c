// Trains one of the agents beside this file: ai-sdk, openai, anthropic, langchain or mcp. `npm ci --prefix examples/agents` installs their clients;
// `node examples/agents/train.ts openai` runs from Node 22.18 on, and `node examples/agents/build/train.js openai` behind `npm run build:agents`.
import { extname } from "node:path"
import { type Agent, evaluate, initializeModel, NativePolicy, sft, Tokenizer, train } from "gigpo"
import type { SqlTask } from "gigpo/environments/sql"
import { load } from "./load.ts"
import { heldOut, sftOptions, shape, training } from "./recipe.ts"
import { shop as environment, hastyExpert as expert } from "./shop.ts"

const [client = "ai-sdk"] = process.argv.slice(2)
const { agent } = (await load(new URL(`./${client}${extname(import.meta.url)}`, import.meta.url).href)) as {
  agent: Agent<SqlTask>
}
const directory = `models/${client}`
await initializeModel({ directory, environment, agent, expert, options: shape, overwrite: true })
const policy = await NativePolicy.open(directory)
const tokenizer = await Tokenizer.open(directory)
const player = { policy, tokenizer, environment, agent }

for await (const { epoch, loss } of sft({ ...player, expert, ...sftOptions }))
  console.log(`SFT on the hasty expert, epoch ${epoch}: loss ${loss.toFixed(3)}`)
const evaluation = { ...player, ...heldOut, rollout: training.rollout }
console.log(await evaluate(evaluation)) // success: 15 to 35 %
for await (const { iteration, metrics } of train({ ...player, ...training }))
  console.log(`iteration ${iteration}: ${(100 * metrics["episode/success"]!).toFixed(1)} % answered`)
console.log(await evaluate(evaluation)) // success: 50 to 95 %
await policy.save(`${directory}-trained`, { files: tokenizer.files, overwrite: true })
