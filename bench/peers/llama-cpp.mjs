// Generation with llama.cpp through node-llama-cpp: node llama-cpp.mjs <package folder> <model.gguf> <batch> <prompt> <new> <repeats> <threads>
// Prints one JSON line per repeat. Sequences of a batch are computed together.
import { createRequire } from "node:module"
import { join, resolve } from "node:path"
import { pathToFileURL } from "node:url"

const [folder, modelPath, ...numbers] = process.argv.slice(2)
const [batch, promptTokens, newTokens, repeats, threads] = numbers.map(Number)
const found = createRequire(join(resolve(folder), "package.json")).resolve("node-llama-cpp")
const { getLlama } = await import(pathToFileURL(found).href)
const llama = await getLlama({ gpu: false, build: "never", maxThreads: threads, logLevel: "error" })
const model = await llama.loadModel({ modelPath })
const contextSize = promptTokens + newTokens + 8
const context = await model.createContext({ sequences: batch, contextSize, batchSize: 512, threads })

let seed = 1
/** Number below `limit` of a linear congruential generator; prompts only have to differ. */
function below(limit) {
  seed = (seed * 1103515245 + 12345) % 2 ** 31
  return seed % limit
}

async function generate(sequence) {
  await sequence.clearHistory()
  const prompt = Array.from({ length: promptTokens }, () => 100 + below(40_000))
  let drawn = 0
  for await (const _ of sequence.evaluate(prompt, { temperature: 1, topK: 0, topP: 1, yieldEogToken: true }))
    if (++drawn === newTokens) break
}

const sequences = Array.from({ length: batch }, () => context.getSequence())
for (let repeat = 0; repeat <= repeats; repeat++) {
  const began = performance.now()
  await Promise.all(sequences.map(generate))
  const seconds = (performance.now() - began) / 1000
  if (repeat > 0) console.log(JSON.stringify({ tokensPerSecond: (batch * newTokens) / seconds })) // the first one warms up
}
process.exit(0)
