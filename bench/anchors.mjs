// Time of grouping equal anchor states: natively on strings, as in training, natively on bytes, by a JavaScript Map, and in Python. Strings cache
// their hashes, so only new strings show the cost of a Map. Garbage of creating them is collected before the measurement, as in Python.
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Random } from "gigpo"
import { groupAnchors } from "gigpo/native"
import { Bench } from "tinybench"
import { describeMachine, markdownTable, median, writeResult } from "./machine.mjs"
import { noPeers, python, runPeer } from "./peers.mjs"

setFlagsFromString("--expose-gc")
const collectGarbage = runInNewContext("gc")
const [size, statesOfTask, distinct] = [500, 400, 160]

const table = [["states", "how", "ms", "native on fresh strings is"]]
for (const count of [6_400, 400_000]) {
  const figures = [
    ["native, fresh strings", onFreshStrings(count, groupAnchors)],
    ["Map, fresh strings", onFreshStrings(count, groupByMap)],
  ]
  const { tasks, states } = makeStates(count)
  const encoded = toBytes(states)
  const bench = new Bench({ time: 1500, warmupTime: 300, iterations: 5 })
  bench
    .add("native, bytes", () => groupAnchors(tasks, encoded))
    .add("Map, strings that were keys before", () => groupByMap(tasks, states))
  await bench.run()
  for (const { name, result } of bench.tasks) figures.push([name, result.latency.p50])
  if (python) {
    for (const { peer, milliseconds } of runPeer("anchors.py", ["--states", String(count), "--size", String(size)]))
      figures.push([peer, milliseconds])
  }
  const ours = figures[0][1]
  for (const [name, ms] of figures)
    table.push([
      count.toLocaleString("en"),
      name,
      ms.toFixed(2),
      name === figures[0][0] ? "" : `${(ms / ours).toFixed(1)}×`,
    ])
}

await writeResult(
  "anchors",
  `# Grouping anchor states

States of ${size} bytes, ${statesOfTask} a task, drawn from ${distinct}; medians.
${describeMachine()}${python ? "" : `; ${noPeers}`}

${markdownTable(table)}`,
)

/** Reference: one Map per task. */
function groupByMap(tasks, states) {
  const tables = new Map()
  const groups = new Int32Array(states.length)
  let count = 0
  for (let i = 0; i < states.length; i++) {
    const table = tables.get(tasks[i]) ?? new Map()
    if (table.size === 0) tables.set(tasks[i], table)
    const group = table.get(states[i]) ?? count
    if (group === count) table.set(states[i], count++)
    groups[i] = group
  }
  return groups
}

function toBytes(states) {
  const bytes = Buffer.from(states.join(""), "latin1")
  return { bytes, offsets: Float64Array.from({ length: states.length + 1 }, (_, i) => i * size) }
}

function onFreshStrings(count, group) {
  const times = Array.from({ length: count > 50_000 ? 7 : 21 }, () => {
    const { tasks, states } = makeStates(count)
    collectGarbage()
    const started = performance.now()
    group(tasks, states)
    return performance.now() - started
  })
  return median(times)
}

function makeStates(count) {
  const random = new Random(3)
  const letters = "abcdefghijklmnopqrstuvwxyz      "
  const text = (length) => Array.from({ length }, () => letters[random.below(letters.length)]).join("")
  const tasks = new Int32Array(count)
  const states = new Array(count)
  for (let i = 0; i < count; ) {
    const opening = text(size - 100)
    const endings = Array.from({ length: distinct }, () => text(100))
    // Through a buffer, so that every state is a separate flat string, as are the texts of environments.
    for (let j = 0; j < statesOfTask; j++, i++) {
      tasks[i] = Math.floor(i / statesOfTask)
      states[i] = Buffer.from(opening + endings[random.below(distinct)], "latin1").toString("latin1")
    }
  }
  return { tasks, states }
}
