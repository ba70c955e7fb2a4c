// Grouping equal anchor states: natively on bytes, by a JavaScript Map on strings, natively on strings (which must be copied
// out of the JavaScript heap first), and in Python.
import { groupAnchors, groupByAnchor, Random } from "gigpo"
import { Bench } from "tinybench"
import { describeMachine, markdownTable, writeResult } from "./machine.mjs"
import { noPeers, python, runPeer } from "./peers.mjs"

const [size, statesOfTask, distinct] = [500, 400, 160]

const table = [["states", "how", "ms", "native on bytes is"]]
for (const count of [6_400, 400_000]) {
  const { tasks, states } = makeStates(count)
  const encoder = new TextEncoder()
  const encode = () => {
    const bytes = new Uint8Array(count * size)
    const offsets = new Float64Array(count + 1)
    for (let i = 0; i < count; i++) {
      const { written } = encoder.encodeInto(states[i], bytes.subarray(offsets[i]))
      offsets[i + 1] = offsets[i] + written
    }
    return { bytes, offsets }
  }
  const encoded = encode()
  const bench = new Bench({ time: 1500, warmupTime: 300, iterations: 5 })
  bench
    .add("native, bytes", () => groupAnchors(tasks, encoded))
    .add("Map, strings made before", () => groupByAnchor(tasks, states))
    .add("native, strings copied to bytes first", () => groupAnchors(tasks, encode()))
  await bench.run()
  const figures = bench.tasks.map(({ name, result }) => [name, result.latency.p50])
  // A string's hash is kept with it: the first grouping of fresh strings pays for hashing.
  figures.push(["Map, fresh strings", freshMap(count)])
  if (python) {
    for (const { method, milliseconds } of runPeer("anchors.py", ["--states", String(count), "--size", String(size)]))
      figures.push([`Python: ${method}`, milliseconds])
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

function freshMap(count) {
  const times = []
  for (let run = 0; run < 5; run++) {
    const { tasks, states } = makeStates(count)
    const started = performance.now()
    groupByAnchor(tasks, states)
    times.push(performance.now() - started)
  }
  return times.sort((a, b) => a - b)[2]
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
    // Through a buffer, so that every state is a flat string of its own, as an environment's texts are.
    for (let j = 0; j < statesOfTask; j++, i++) {
      tasks[i] = Math.floor(i / statesOfTask)
      states[i] = Buffer.from(opening + endings[random.below(distinct)], "latin1").toString("latin1")
    }
  }
  return { tasks, states }
}
