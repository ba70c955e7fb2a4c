// Effect of a hostile client on an ordinary client. Each server of the package runs in a separate process, and the ordinary client sends small
// requests: alone, next to a process that only computes, next to one hostile client with the key (from another address), and next to a flood of
// requests without a key. Turns alternate, so that other load of the machine affects all alike. `--seconds 30` is the time of the ordinary client
// alone; the hostile client gets twice that time.
//
// Parts of it, which are printed and not written to bench/results: `--only "serve, 1M"` is one server, `--beside "hostile client"` one of the
// others, and `--attack 6` one kind of hostile request by its place in hostile/attack.mjs.
import { fork } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { parseArgs } from "node:util"
import { openServers } from "./hostile/servers.mjs"
import { describeMachine, markdownTable, writeResult } from "./machine.mjs"

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "30" },
    only: { type: "string" },
    beside: { type: "string" },
    attack: { type: "string" },
  },
})
const turns = 3
const seconds = Number(values.seconds) / turns
const busy = "a busy process, no requests"
const all = { alone: seconds, [busy]: seconds, "hostile client": 2 * seconds, flood: seconds }
const sides = Object.fromEntries(
  Object.entries(all).filter(
    ([side]) => [undefined, side].includes(values.beside) || side === "alone" || side === busy,
  ),
)
const kinds = { flood: "flood", [busy]: "busy" }

const folder = await mkdtemp(join(tmpdir(), "gigpo-hostile-"))
const table = [
  [
    "server",
    "beside",
    "requests",
    "p50, ms",
    "p99, ms",
    "slowest, ms",
    "p99 of alone",
    "p99 of a busy process",
    "failed",
    "what the others sent",
  ],
]
const memory = []
try {
  for (const { name, open } of openServers(folder))
    if (!values.only || name === values.only) await measure(name, await open())
} finally {
  await rm(folder, { recursive: true })
}

async function measure(name, server) {
  const found = Object.fromEntries(Object.keys(sides).map((side) => [side, { times: [], failed: 0, sent: 0 }]))
  await during(2, server.ask, { times: [], failed: 0 })
  for (let turn = 0; turn < turns; turn++)
    for (const [side, length] of Object.entries(sides)) {
      const others = side === "alone" ? undefined : fork(new URL("hostile/attack.mjs", import.meta.url), [JSON.stringify({ kind: kinds[side] ?? server.kind, attack: values.attack, ...server.attacked })]) // biome-ignore format: one line
      if (others) await wait(1000)
      await during(length, server.ask, found[side])
      if (!others) continue
      others.send("stop")
      const [sent] = await Promise.race([once(others, "message"), once(others, "exit")])
      found[side].sent += typeof sent?.sent === "number" ? sent.sent : 0
      others.kill("SIGKILL")
      await wait(2000) // until the requests of the hostile client are cancelled
    }
  memory.push(`${name}: ${(await server.memory()).toFixed(0)} MB`)
  await server.stop()
  const [alone, beside] = ["alone", busy].map((side) => quantile(found[side].times, 0.99))
  for (const [side, { times, failed, sent }] of Object.entries(found)) {
    const p99 = quantile(times, 0.99)
    const figures = [quantile(times, 0.5), p99, Math.max(...times)].map((time) => time.toFixed(1))
    table.push([
      name,
      side,
      times.length,
      ...figures,
      (p99 / alone).toFixed(2),
      (p99 / beside).toFixed(2),
      failed,
      side === "alone" || side === busy ? "" : `${sent} requests or connections`,
    ])
    console.error(table.at(-1).join(" | "))
  }
}

/** Sends one request after the other, with a pause as of a person or a tool. */
async function during(length, ask, found) {
  const until = performance.now() + length * 1000
  while (performance.now() < until) {
    const began = performance.now()
    try {
      await ask()
      found.times.push(performance.now() - began)
    } catch {
      found.failed++
    }
    await wait(20)
  }
}

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN
}

const text = `# One hostile client

An ordinary client asks for something small again and again: alone, beside a process that only computes, beside one hostile client that has
the key and another address (${Math.round(2 * turns * seconds)} s), and beside a flood without a key (${Math.round(turns * seconds)} s each, by turns). All of them share the machine, the process beside it at a lower priority. ${describeMachine()}

${markdownTable(table)}

Peak memory: ${memory.join(", ")}.

What a fair share would allow: the process beside the ordinary client takes one core at its priority, whatever it sends, so that "a busy
process, no requests" is the least that any other program on this machine costs. "p99 of a busy process" is what is left for the server to
answer for. There 1 is an ordinary client that does not notice the hostile one, and 2 is an equal share for each of the two.`
if (Object.keys(values).some((name) => name in { only: 0, beside: 0, attack: 0 })) console.log(text)
else await writeResult("hostile", text)
