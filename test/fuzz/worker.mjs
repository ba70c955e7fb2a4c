// A process that gives mutated inputs to one target: node worker.mjs <job as JSON>. Before each input its number is written to the
// progress file, which tells the parent process what this one hung or died of, and its bytes to another. Findings go to standard output, a line of
// JSON each.
import { copyFileSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs"
import { join } from "node:path"
import { Draws } from "./draws.mjs"
import { mutate } from "./mutate.mjs"

const { name, seed, first, last, seconds, folder, limits, keep } = JSON.parse(process.argv[2])
const { prepare } = await import(`./targets/${name}.mjs`)
const progress = openSync(join(folder, "progress"), "w")
const inputFile = join(folder, "input")
const scratch = join(folder, `scratch-${first}`)
mkdirSync(scratch, { recursive: true })

let current = first
const tell = (kind, more) => process.stdout.write(`${JSON.stringify({ index: current, kind, ...more })}\n`)
/** Tells of a finding, and keeps the input. */
function find(kind, more) {
  const file = `${keep}-${current}`
  const isInput = existsSync(inputFile) // not while seeds are read
  if (isInput) copyFileSync(inputFile, file)
  tell(kind, { ...more, ...(isInput && { file }) })
}
const most = { slowest: 0, largest: 0 }
function noteMost(kind, amount, { name }) {
  if (amount <= most[kind]) return
  most[kind] = amount
  tell(kind, { amount, input: name })
}
const described = (error) => ({ message: String(error?.stack ?? error).slice(0, 1500) })
process.on("uncaughtException", (error) => find("uncaught", described(error)))
process.on("unhandledRejection", (error) => find("unhandled", described(error)))
process.on("warning", () => {})

const target = await prepare(scratch, first)
const others = target.seeds.map(({ bytes }) => bytes)

/** Undefined where the input was read. */
async function refusal(input) {
  try {
    await target.run(input)
  } catch (error) {
    return error ?? new Error("Nothing was thrown.")
  }
}

const isOurs = (error) => (error.name === "GigpoError" && error.code !== "INTERNAL") || target.mayThrow?.(error)

/** Bytes of the peak of resident memory. On Linux maxRSS starts at the peak of the parent process: there the peak of this one is read. */
function peak() {
  const [, kibibytes] = existsSync("/proc/self/status")
    ? (/^VmHWM:\s*(\d+)/m.exec(readFileSync("/proc/self/status", "latin1")) ?? [])
    : []
  return 1024 * Number(kibibytes ?? process.resourceUsage().maxRSS)
}

// Seeds are read as they are: then what is loaded and compiled once is no part of what an input costs.
for (const input of target.seeds) {
  const error = await refusal(input)
  if (error && !target.mayRefuse?.(input)) tell("seed refused", { ...described(error), input: input.name })
}
tell("ready")
const until = Date.now() + seconds * 1000

for (; current < last && Date.now() < until; current++) {
  const draws = new Draws(seed, name, current)
  const chosen = draws.of(target.seeds)
  const input = { ...chosen, bytes: mutate(chosen.bytes, draws, others) }
  const about = { input: input.name, bytes: input.bytes.length }
  writeFileSync(inputFile, input.bytes)
  writeSync(progress, String(current).padStart(12), 0)
  const [cpu, before] = [process.cpuUsage(), peak()]
  const error = await refusal(input)
  const { user, system } = process.cpuUsage(cpu)
  const [spent, grown] = [(user + system) / 1e6, peak() - before]
  noteMost("slowest", spent, input)
  noteMost("largest", grown, input)
  if (error && !isOurs(error)) find("internal", { ...about, ...described(error) })
  if (spent > limits.seconds) find("slow", { ...about, seconds: spent })
  if (grown > limits.bytes + limits.multiple * input.bytes.length) find("memory", { ...about, grown })
}
writeSync(progress, String(current).padStart(12), 0)
tell("done")
process.exit(0)
