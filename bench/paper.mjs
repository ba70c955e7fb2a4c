// The paper's comparisons on a small scale: worlds × variants × seeds, as declared in bench/paper/tables.mjs. Does the remaining runs within the
// given time, several in parallel, and writes tables, curves and numbers to bench/results/.
//   npm run bench:paper -- [table …] [--minutes 60] [--jobs 2]     interrupted runs continue at the next call
//   npm run bench:paper -- --repeat <world>/<variant>[/<seed>]     repeats a row and compares all digits with the stored results
//   npm run bench:paper -- --tables mine.mjs                       custom tables
import { availableParallelism } from "node:os"
import { resolve } from "node:path"
import { parseArgs } from "node:util"
import { describeMachine, instructionSet } from "./machine.mjs"
import { cellsOf, doCell, isDone, nameOf, resultOf } from "./paper/cells.mjs"
import { compareWithKept } from "./paper/repeat.mjs"
import { writeTable } from "./paper/write.mjs"

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: "string", default: "Infinity" },
    jobs: { type: "string", default: String(availableParallelism()) },
    repeat: { type: "string" },
    tables: { type: "string", default: "bench/paper/tables.mjs" },
    runs: { type: "string", default: "runs/paper" },
    results: { type: "string", default: "bench/results" },
  },
})
const { tables } = await import(resolve(values.tables))
const unknown = positionals.find((name) => !Object.hasOwn(tables, name))
if (unknown) throw new Error(`There is no table ${unknown}; known: ${Object.keys(tables).join(", ")}.`)
const stop = new AbortController()
process.once("SIGINT", () => stop.abort()).once("SIGTERM", () => stop.abort())
const minutes = Number(values.minutes)
if (Number.isFinite(minutes)) setTimeout(() => stop.abort(), minutes * 60_000).unref()

if (values.repeat) await repeat(values.repeat)
else await complete(positionals.length > 0 ? positionals : Object.keys(tables))

async function complete(names) {
  const places = { runs: values.runs, results: values.results }
  await doAll(names.flatMap((name) => cellsOf(tables[name], places)))
  for (const name of names) {
    const cells = cellsOf(tables[name], places)
    const results = await Promise.all(cells.map(async (cell) => ({ ...cell, result: await resultOf(cell) })))
    const done = results.filter(({ result }) => result)
    if (done.length > 0) console.log(await writeTable(name, tables[name], done, values.results))
    if (done.length < cells.length) console.log(`${name}: ${done.length} of ${cells.length} runs are done.`)
  }
}

async function repeat(row) {
  const runs = `${values.runs}-repeated/${Date.now()}`
  const all = Object.values(tables).flatMap((table) => cellsOf(table, { runs }))
  const named = new Map(all.map((cell) => [nameOf(cell), cell]))
  const cells = [...named].filter(([name]) => name === row || name.startsWith(`${row}/`)).map(([, cell]) => cell)
  if (cells.length === 0) throw new Error(`There is no ${row}; --repeat takes <world>/<variant>/<seed> of the tables.`)
  await doAll(cells)
  const same = await Promise.all(
    cells.map(async (cell) => await compareWithKept({ ...cell, results: values.results }, await resultOf(cell))),
  )
  process.exitCode = same.every(Boolean) ? 0 : 1
}

/** Runs all cells, ordered by seed, so that the results are comparable after an interruption. */
async function doAll(cells) {
  const queue = [...new Map(cells.map((cell) => [nameOf(cell), cell])).values()].sort((a, b) => a.seed - b.seed)
  const work = async () => {
    for (let cell = queue.shift(); cell && !stop.signal.aborted; cell = queue.shift()) await doOne(cell)
  }
  await Promise.all(Array.from({ length: Number(values.jobs) }, work))
}

async function doOne(cell) {
  if (isDone(cell, await resultOf(cell))) return
  const began = performance.now()
  if (!(await doCell(cell, { about: describeMachine(), instructionSet }, stop.signal))) return
  const shown = (await resultOf(cell)).curve.map(([, share]) => (100 * share).toFixed(1))
  console.log(`${nameOf(cell)}: ${shown.join(" → ")} %, ${((performance.now() - began) / 60_000).toFixed(1)} min`)
}
