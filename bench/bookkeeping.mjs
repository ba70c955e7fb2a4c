// Time of an iteration outside the model: from the episodes of a rollout to packed batches, including credit, on texts that were not hashed
// before. Compares GiGPO with GRPO, and relates the difference to an iteration of the 25 M model.

import { packRows } from "../modules/engine/native/pack-rows.js"
import { toBatch } from "../modules/entries/advantages.js"
import { gigpo, grpo, Random } from "../modules/entries/index.js"
import { collectSteps, miniBatches, toSequences } from "../modules/entries/loop.js"
import { describeMachine, markdownTable, median, writeResult } from "./machine.mjs"
import { completion, makeGroups, members, prompt, tasks, turns } from "./made-episodes.mjs"
import { models, openModel, randomTokens } from "./models.mjs"
import { steps as many, measureStretches } from "./stretches.mjs"

const [rows, length] = [tasks * members * turns, prompt + completion]
const progress = { iteration: 0, iterations: 1 }

/** Milliseconds of each part of the bookkeeping. */
async function keepBooks(groups, estimator) {
  const times = {}
  let last = performance.now()
  const lap = (name) => {
    const now = performance.now()
    times[name] = now - last
    last = now
  }
  const steps = collectSteps(groups)
  lap("steps")
  const credit = await estimator.estimate(toBatch(steps), { progress, random: new Random(1) })
  lap("credit")
  const all = toSequences(steps, credit)
  lap("rows")
  for (const batch of miniBatches([all], 256, new Random(2)))
    await packRows(batch, { temperature: 1, advantages: true, oldLogProbs: true })
  lap("packing")
  return { ...times, all: Object.values(times).reduce((sum, time) => sum + time, 0) }
}

const columns = ["steps", "credit", "rows", "packing", "all"]
const table = [["estimator", ...columns.map((name) => `${name}, ms`)]]
const found = {}
for (const [name, estimator] of [
  ["GiGPO", gigpo()],
  ["GRPO", grpo()],
]) {
  const runs = []
  for (let i = 0; i < 12; i++) runs.push(await keepBooks(makeGroups(i), estimator))
  runs.splice(0, 2) // two to warm up
  found[name] = Object.fromEntries(columns.map((column) => [column, median(runs.map((run) => run[column]))]))
  table.push([name, ...columns.map((column) => found[name][column].toFixed(2))])
}

const model = "25M"
const { config } = models[model]
const policy = await openModel(model)
const random = new Random(1)
const sample = Array.from({ length: 8 }, () => {
  const tokens = randomTokens(random, length, config.vocabularySize)
  return {
    tokens,
    segments: [{ start: prompt, length: completion, advantage: 1, logProbs: new Float32Array(completion).fill(-9) }],
  }
})
const loss = { kind: "cross-entropy" }
await policy.forwardBackward(sample, loss)
const started = performance.now()
for (let i = 0; i < 3; i++) await policy.forwardBackward(sample, loss)
const perRow = (performance.now() - started) / (3 * sample.length)
await policy.dispose()
const stretches = [["part", "all, ms", "longest stretch, ms"], ...(await measureStretches())]
const more = found.GiGPO.all - found.GRPO.all
const share = (100 * more) / (rows * perRow)

await writeResult(
  "bookkeeping",
  `# An iteration's bookkeeping

From the episodes to the packed batches: ${rows.toLocaleString("en")} steps of ${length} tokens (${tasks} tasks × ${members} episodes × ${turns}
steps, batches of 256), states of 500 characters that were not hashed before; medians of 10.
${describeMachine()}

${markdownTable(table)}

GiGPO takes ${more.toFixed(2)} ms more than GRPO. The ${model} model trains one such row in ${perRow.toFixed(0)} ms, so training alone takes
${((rows * perRow) / 1000).toFixed(0)} s per iteration. The additional time of GiGPO is ${share.toFixed(4)} % of that.

## The event loop

In a training, each part pauses for other work of the process. With ${many.toLocaleString("en")} steps, the longest time between two turns of the event loop,
garbage collection included:

${markdownTable(stretches)}`,
)
