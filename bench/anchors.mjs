// Grouping equal anchor states: natively on bytes; on strings natively (copied to bytes first) and by a JavaScript Map; and in
// Python. A string keeps its hash, so only fresh strings show what a Map costs.
import { groupAnchors, groupByAnchor, Random } from "gigpo"
import { Bench } from "tinybench"
import { describeMachine, markdownTable, median, writeResult } from "./machine.mjs"
import { noPeers, python, runPeer } from "./peers.mjs"

const [size, statesOfTask, distinct] = [500, 400, 160]

const table = [["states", "how", "ms", "native on bytes is"]]
for (const count of [6_400, 400_000]) {
  const { tasks, states } = makeStates(count)
  const encoded = toBytes(states)
  const bench = new Bench({ time: 1500, warmupTime: 300, iterations: 5 })
  bench
    .add("native, bytes", () => groupAnchors(tasks, encoded))
    .add("Map, strings that were keys before", () => groupByAnchor(tasks, states))
  await bench.run()
  const figures = bench.tasks.map(({ name, result }) => [name, result.latency.p50])
  figures.push(["native, fresh strings", onFreshStrings(count, groupAnchors)])
  figures.push(["Map, fresh strings", onFreshStrings(count, groupByAnchor)])
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

function toBytes(states) {
  const bytes = Buffer.from(states.join(""), "latin1")
  return { bytes, offsets: Float64Array.from({ length: states.length + 1 }, (_, i) => i * size) }
}

function onFreshStrings(count, group) {
  const times = Array.from({ length: 7 }, () => {
    const { tasks, states } = makeStates(count)
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
    // Through a buffer, so that every state is a flat string of its own, as an environment's texts are.
    for (let j = 0; j < statesOfTask; j++, i++) {
      tasks[i] = Math.floor(i / statesOfTask)
      states[i] = Buffer.from(opening + endings[random.below(distinct)], "latin1").toString("latin1")
    }
  }
  return { tasks, states }
}
