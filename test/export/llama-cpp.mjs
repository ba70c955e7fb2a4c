// Computes with llama.cpp through node-llama-cpp, in a process of its own. Standard input is a JSON list of jobs, whose results are printed as JSON.
// GIGPO_LLAMA_CPP is a folder in which node-llama-cpp 3.22 is installed.
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { pathToFileURL } from "node:url"

const entry = join(process.env.GIGPO_LLAMA_CPP, "node_modules/node-llama-cpp/dist/index.js")
const { getLlama } = await import(pathToFileURL(entry).href)
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error", maxThreads: 2 })

/** Evaluates tokens and returns one result for each token after which `wanted` asks for one. */
async function evaluate(sequence, tokens, wanted) {
  const items = tokens.map((token, i) => {
    const asked = wanted(i)
    if (!asked) return token
    const logits = { filter: { tokens: asked.of, includeTop: 2 } }
    return [token, { generateNext: { logits, totalLogitWeight: true, options: { temperature: 0 } } }]
  })
  return (await sequence.controlledEvaluate(items)).map((one) => one?.next)
}

const jobs = {
  /**
   * Generates greedily after each prompt. `along` is the expected text: where llama.cpp prefers another token, that is reported with both logits, and
   * the expected one follows, so that one difference does not hide the rest.
   */
  async greedy(context, { prompts, along }) {
    const others = []
    for (const [index, prompt] of prompts.entries()) {
      const sequence = context.getSequence()
      let next = prompt
      for (const [at, expected] of along[index].entries()) {
        const found = await evaluate(sequence, next, (i) => i === next.length - 1 && { of: [expected] })
        const { logits } = found.at(-1)
        const [token, logit] = [...logits].reduce((best, one) => (one[1] > best[1] ? one : best))
        if (token !== expected) others.push({ prompt: index, at, token, logit, expected: logits.get(expected) })
        next = [expected]
      }
      sequence.dispose()
    }
    return others
  },
  /** Log-probability of each token of a text but the first. */
  async logProbs(context, { texts }) {
    const results = []
    for (const tokens of texts) {
      const sequence = context.getSequence()
      const found = await evaluate(sequence, tokens, (i) => i + 1 < tokens.length && { of: [tokens[i + 1]] })
      results.push(
        found.slice(0, tokens.length - 1).map(({ logits, totalLogitWeight }, i) => {
          const largest = Math.max(...logits.values())
          return logits.get(tokens[i + 1]) - largest - Math.log(totalLogitWeight)
        }),
      )
      sequence.dispose()
    }
    return results
  },
}

const results = []
for (const { model: modelPath, lora, ...job } of JSON.parse(await text(process.stdin))) {
  const model = await llama.loadModel({ modelPath })
  const context = await model.createContext({ contextSize: 512, threads: 2, ...(lora && { lora }) })
  results.push(await jobs[job.kind](context, job))
  await context.dispose()
  await model.dispose()
}
console.log(JSON.stringify(results))
process.exit(0)
