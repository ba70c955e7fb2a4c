// Sampling 64 completions at once beside transformers.generate, by turns in one run.
import { Random } from "gigpo"
import { describeMachine, markdownTable, median, writeResult } from "./machine.mjs"
import { models, openModel, peerFlags, randomTokens } from "./models.mjs"
import { noPeers, python, runPeer, torchModes } from "./peers.mjs"

const [batch, promptTokens, newTokens, turns, runs] = [64, 96, 32, 3, 5]

const table = [["model", "who", "new tokens/s", "ours is"]]
for (const [name, { config }] of Object.entries(models)) {
  const policy = await openModel(name)
  const random = new Random(2)
  let key = 0
  const run = async () => {
    // New prompts every time: nothing may be found in the cache.
    const prompts = Array.from({ length: batch }, () => randomTokens(random, promptTokens, config.vocabularySize))
    const started = performance.now()
    await Promise.all(
      prompts.map((prompt) => policy.sample({ prompt, maxTokens: newTokens, stopTokens: [], key: [key++, 0] })),
    )
    return (batch * newTokens) / ((performance.now() - started) / 1000)
  }
  for (let i = 0; i < 2; i++) await run()
  const ours = []
  const theirs = torchModes.map(() => [])
  for (let turn = 0; turn < turns; turn++) {
    for (let i = 0; i < runs; i++) ours.push(await run())
    if (!python) continue
    for (const [index, [, env]] of torchModes.entries()) {
      theirs[index].push(runPeer("generate.py", [...peerFlags(name), "--repeats", "3"], env)[0].tokensPerSecond)
    }
  }
  const speed = median(ours)
  const label = `${name} (${policy.parameters.toLocaleString("en")})`
  table.push([label, "gigpo", speed.toFixed(0), ""])
  for (const [index, [who]] of torchModes.entries()) {
    if (theirs[index].length === 0) continue
    const other = median(theirs[index])
    table.push([
      label,
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

${batch} prompts of ${promptTokens} tokens, ${newTokens} new tokens each, temperature 1; the time includes the prompts; fp32; medians.
${describeMachine()}${python ? "" : `; ${noPeers}`}

${markdownTable(table)}`,
)
