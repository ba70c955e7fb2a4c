// Fuzzes readers of files and messages from elsewhere for longer than the tests:
//   npm run fuzz -- [target …] [--minutes 10] [--seed 1]    minutes of each target; without a target, all one after the other
//   npm run fuzz -- <target> --seed 1 --input 17            one input alone
// Inputs of findings are kept in build/fuzz, and make the exit status 1.
import { parseArgs } from "node:util"
import { type Fuzzed, fuzz, fuzzLimits, fuzzTargets } from "./fuzz.ts"

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    input: { type: "string" },
  },
})
const unknown = positionals.find((name) => !fuzzTargets.includes(name))
if (unknown !== undefined) throw new Error(`There is no target ${unknown}; known: ${fuzzTargets.join(", ")}.`)
const minutes = Number(values.minutes)
if (!(minutes > 0)) throw new Error(`--minutes is ${values.minutes}: give a number above 0.`)
const input = values.input === undefined ? undefined : Number(values.input)
if (input !== undefined && !(Number.isSafeInteger(input) && input >= 0 && positionals.length === 1))
  throw new Error("--input is the number of an input of one target: give both.")

const range = input === undefined ? { from: 0, to: 2 ** 40 } : { from: input, to: input + 1 }
const options = { seconds: 60 * minutes, seed: values.seed, ...range, limits: fuzzLimits, keep: "build/fuzz" }

function print(name: string, { tried, slowest, largest, findings }: Fuzzed): void {
  const slow = slowest ? `, slowest ${slowest.amount.toFixed(3)} s (${slowest.input}, input ${slowest.index})` : ""
  const grown = largest
    ? `, largest growth ${(largest.amount / 2 ** 20).toFixed(1)} MiB (${largest.input}, input ${largest.index})`
    : ""
  console.log(`${name}: ${tried} inputs${slow}${grown}, ${findings.length} findings`)
  for (const finding of findings) console.log(JSON.stringify(finding, null, 2))
}

for (const name of positionals.length > 0 ? positionals : fuzzTargets) {
  const fuzzed = await fuzz(name, options)
  print(name, fuzzed)
  if (fuzzed.findings.length > 0) process.exitCode = 1
}
