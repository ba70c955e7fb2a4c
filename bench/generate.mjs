// Comparison with transformers.generate: sampling of 64 completions at once, alternating in one run.
import { Random } from "gigpo"
import { describeMachine, instructionSet, markdownTable, median, writeResult } from "./machine.mjs"
import { models, openModel, peerFlags, randomTokens } from "./models.mjs"
import { noPeers, python, runPeer, torchModes } from "./peers.mjs"

const [batch, turns, runs] = [64, 2, 5]
// Short prompts measure decoding, long prompts mostly the computation of prompts.
const shapes = [
  { promptTokens: 16, newTokens: 112 },
  { promptTokens: 96, newTokens: 32 },
]

const table = [["model", "prompt + new", "who", "new tokens/s", "ours is"]]
for (const [name, { config }] of Object.entries(models)) for (const shape of shapes) await measure(name, config, shape)

async function measure(name, config, { promptTokens, newTokens }) {
  const policy = await openModel(name)
  const random = new Random(2)
  const lengths = ["--prompt", String(promptTokens), "--new", String(newTokens)]
  let key = 0
  const run = async () => {
    // New prompts every time, so that the prefix cache has no hits.
    const prompts = Array.from({ length: batch }, () => randomTokens(random, promptTokens, config.vocabularySize))
    const started = performance.now()
    await Promise.all(
      prompts.map((prompt) => policy.sample({ prompt, maxTokens: newTokens, stopTokens: [], key: [key++, 0] })),
    )
    return (batch * newTokens) / ((performance.now() - started) / 1000)
  }
  for (let i = 0; i < 12; i++) await run() // until all memory of the cache has been used once
  const ours = []
  const theirs = torchModes.map(() => [])
  for (let turn = 0; turn < turns; turn++) {
    for (let i = 0; i < runs; i++) ours.push(await run())
    if (!python) continue
    for (const [index, [, env]] of torchModes.entries()) {
      theirs[index].push(
        runPeer("generate.py", [...peerFlags(config), ...lengths, "--repeats", "3"], env)[0].tokensPerSecond,
      )
    }
  }
  const speed = median(ours)
  const size = `${promptTokens} + ${newTokens}`
  const label = `${name} (${policy.parameters.toLocaleString("en")})`
  table.push([label, size, `gigpo, ${instructionSet}`, speed.toFixed(0), ""])
  for (const [index, [who]] of torchModes.entries()) {
    if (theirs[index].length === 0) continue
    const other = median(theirs[index])
    table.push([
      label,
      size,
      who.replace("PyTorch eager", "transformers.generate"),
      other.toFixed(0),
      `${(speed / other).toFixed(2)}×`,
    ])
  }
  await policy.dispose()
}

await writeResult(
  "generate",
  `# Generation

${batch} completions at once, temperature 1; the time includes the prompts; fp32; medians.
${describeMachine()}${python ? "" : `; ${noPeers}`}

${markdownTable(table)}`,
)
