// Longest time for which each part of an iteration's bookkeeping keeps the event loop from its other work, at 100,000 steps.

import { estimate } from "../modules/credit/as-estimator.js"
import { batchInPieces } from "../modules/credit/batch.js"
import { gigpo, Random } from "../modules/entries/index.js"
import { tokenBytes } from "../modules/tokenizer/token-bytes.js"
import { planUpdates } from "../modules/training/batching.js"
import { rolloutMetrics } from "../modules/training/metrics.js"
import { SequenceTable } from "../modules/training/sequence-table.js"
import { collectInPieces } from "../modules/training/steps.js"
import { Pace } from "../modules/util/pace.js"
import { median } from "./machine.mjs"
import { makeGroups, members, turns } from "./made-episodes.mjs"

const groups = 256
export const steps = groups * members * turns
const vocabulary = 151936

/** Rows of a table: name of each part, its milliseconds, and those of its longest stretch; medians of some rollouts. */
export async function measureStretches(rollouts = 5) {
  await measureParts(0) // warms up
  const found = []
  for (let i = 1; i <= rollouts; i++) found.push(await measureParts(i))
  const middle = (name, key) => median(found.map((times) => times[name][key])).toFixed(1)
  return Object.keys(found[0]).map((name) => [name, middle(name, "all"), middle(name, "longest")])
}

async function measureParts(seed) {
  const played = makeGroups(seed, groups)
  const times = {}
  const measure = async (name, work) => {
    const { value, ...time } = await watch(work)
    times[name] = time
    return value
  }
  const paced = (name, pieces) => measure(name, () => new Pace().through(pieces()))
  const collected = await paced("collecting steps", () => collectInPieces(played))
  const batch = await paced("columns and step groups", () => batchInPieces(collected))
  const context = { progress: { iteration: 0, iterations: 1 }, random: new Random(1) }
  const credit = await measure("GiGPO", () => estimate(gigpo(), batch, context))
  const table = await paced("table of sequences", () => SequenceTable.inPieces(collected))
  const rows = await paced("sequences", () => table.withCredit(credit).viewInPieces())
  const options = {
    stepsPerUpdate: 256,
    episodesPerUpdate: undefined,
    updatesPerEpoch: undefined,
    epochs: 1,
    unit: "completion",
  }
  await paced("plan of updates", () => planUpdates(rows, options, new Random(2)))
  const named = played.map((episodes, index) => ({ task: index, index, episodes }))
  await paced("metrics of the rollout", () => rolloutMetrics(named, credit))
  const random = new Random(seed)
  const token = (id) => `${id.toString(36)}${"e".repeat(random.below(5))}`
  const ids = new Map(Array.from({ length: vocabulary }, (_, id) => [token(id), id]))
  const json = { decoder: { type: "ByteLevel" }, added_tokens: [] }
  const name = `bytes of ${vocabulary.toLocaleString("en")} tokens`
  await paced(name, () => tokenBytes(json, ids, [0], vocabulary, "tokenizer.json"))
  return times
}

/** Runs work while the event loop turns: its result, its milliseconds, and the longest time between two turns. */
async function watch(work) {
  let [last, longest, on] = [performance.now(), 0, true]
  const turn = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    if (on) setImmediate(turn)
  }
  const started = last
  setImmediate(turn)
  const value = await work()
  const ended = performance.now()
  on = false
  return { value, all: ended - started, longest: Math.max(longest, ended - last) }
}
