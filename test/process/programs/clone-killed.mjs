// Clones for four epochs, all weights or an adapter's; killed after step `killAt`. Prints what it ended with.
import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import { sokoban } from "../../../modules/entries/environments/sokoban.js"
import { NativePolicy, Run, sft, Tokenizer } from "../../../modules/entries/index.js"

const [model, directory, mode, killAt, trained] = process.argv.slice(2)
const lora = trained === "adapter" ? { rank: 2 } : undefined
const policy = await NativePolicy.open(model, { threads: 1, device: "cpu", lora })
const tokenizer = await Tokenizer.open(model)
const environment = sokoban({ rules: false, history: 0, thinking: "off", maxSteps: 3 })
const optimizer = { learningRate: 1e-3, warmup: 1, schedule: "cosine" }
const run = await Run.open(directory, {}, { resume: mode === "resume" })
const onProgress = ({ done }) => {
  if (done === Number(killAt)) process.kill(process.pid, "SIGKILL")
}
const setup = { policy, tokenizer, environment, run, onProgress, seed: 4, optimizer }
await sft({ ...setup, tasks: 12, epochs: 4, completionsPerUpdate: 8, checkpointEvery: 2 })
const metrics = (await readFile(`${directory}/metrics.jsonl`, "utf8")).replaceAll(/,?"time\/?[^,}]*/g, "")
const saved = run.checkpoint.directory
await run.close()
await policy.dispose()
await tokenizer.dispose()
const hash = async (file) =>
  createHash("sha256")
    .update(await readFile(`${saved}/${file}`))
    .digest("hex")
const weights = await hash(lora ? "adapter_model.safetensors" : "model.safetensors")
const moments = await hash("optimizer/model.safetensors")
process.stdout.write(JSON.stringify({ step: run.iteration, weights, moments, metrics }))
