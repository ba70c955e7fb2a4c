import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const missing = ["dist/cli/main.js", "build/Release"].find((path) => !existsSync(path))

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-paper-"))
  await writeFile(join(folder, "world.yaml"), world)
  await declare(0.1)
})
afterAll(async () => await rm(folder, { recursive: true }))

const world = `
environment: { name: number-line, maxPosition: 4, maxSteps: 6, completionFormat: tags, rules: false, thinking: off }
initialModel: { hiddenSize: 32, layers: 1, heads: 2, vocabularySize: 280 }
sft: { tasks: 150, epochs: 4, completionsPerUpdate: 16, optimizer: { learningRate: 3e-3 } }
training:
  iterations: 3
  groups: 3
  groupSize: 4
  rollout: { maxCompletionTokens: 10 }
  evaluation: { every: 1, tasks: 16 }
`

/** A matrix of four runs; one of its variants has this penalty. */
async function declare(penalty: number): Promise<void> {
  const variants = [
    { name: "GiGPO", set: { "training.estimator": { name: "gigpo", invalidActionPenalty: penalty } } },
    { name: "GRPO", set: { "training.estimator": { name: "grpo" } } },
  ]
  const worlds = [{ name: "line", config: join(folder, "world.yaml"), set: {} }]
  const small = { title: "A small matrix", worlds, variants, seeds: [1, 2], against: "GRPO", finals: 1 }
  await writeFile(join(folder, "tables.mjs"), `export const tables = ${JSON.stringify({ small })}\n`)
}

interface Ended {
  readonly code: number
  readonly text: string
}

function paper(runs: string, ...more: string[]): Promise<Ended> {
  const places = ["--tables", join(folder, "tables.mjs"), "--runs", join(folder, runs), "--results", results(runs)]
  return new Promise((resolve) => {
    execFile(process.execPath, ["bench/paper.mjs", ...places, ...more], (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, text: stdout + stderr }),
    )
  })
}

const results = (runs: string) => join(folder, `${runs}-results`)

async function kept(runs: string, ending: string): Promise<string> {
  const file = (await readdir(results(runs))).find((name) => name.endsWith(ending))
  return join(results(runs), file!)
}

async function numbers(runs: string): Promise<Record<string, unknown>[]> {
  return JSON.parse(await readFile(await kept(runs, ".json"), "utf8"))
}

const withoutMachine = (all: readonly Record<string, unknown>[]) => all.map(({ about: _, ...rest }) => rest)

describe.skipIf(missing)(`bench:paper${missing ? ` (needs ${missing})` : ""}`, () => {
  it("does a matrix, and writes means and paired differences with their intervals", { timeout: 120_000 }, async () => {
    const { code, text } = await paper("whole")
    expect(text).toMatch(/line\/GiGPO\/1: /)
    expect(code).toBe(0)
    const all = await numbers("whole")
    expect(all.map(({ variant, seed }) => [variant, seed])).toEqual([
      ["GiGPO", 1],
      ["GRPO", 1],
      ["GiGPO", 2],
      ["GRPO", 2],
    ])
    const curves = all.map(({ curve }) => curve as [number, number][])
    expect(curves.map((curve) => curve.map(([iteration]) => iteration))).toEqual(Array(4).fill([0, 1, 2, 3]))
    expect(curves[0]![0]).toEqual(curves[1]![0]) // the same cloned model
    expect(curves.flat().some(([, success]) => success > 0)).toBe(true) // else all numbers here are 0
    const finals = all.map(({ finals }) => (finals as [number])[0])
    const differences = [0, 2].map((first) => 100 * (finals[first]! - finals[first + 1]!))
    const mean = (differences[0]! + differences[1]!) / 2
    const half = (12.7062 * Math.abs(differences[0]! - differences[1]!)) / 2 // t of 0.975 with one degree, times s / √2
    const page = await readFile(await kept("whole", ".md"), "utf8")
    const row = page.split("\n").find((line) => line.startsWith("| GiGPO"))!
    const found = row
      .split("|")[6]!
      .match(/-?[\d.]+/g)!
      .map(Number)
    for (const [index, value] of [mean, mean - half, mean + half].entries()) expect(found[index]).toBeCloseTo(value, 0)
  })

  it("does nothing twice, and anew what has other settings", { timeout: 120_000 }, async () => {
    const changed = async (name: string) => (await stat(join(folder, "whole/line", name))).mtimeMs
    const names = ["seed-1/GiGPO.json", "seed-1/GRPO.json", "seed-2/GiGPO.json"]
    const before = await Promise.all(names.map(changed))
    await paper("whole")
    expect(await Promise.all(names.map(changed))).toEqual(before)
    const elsewhere = await paper("whole", "--runs", join(folder, "elsewhere"))
    expect(elsewhere.text).not.toContain("line/GiGPO")
    expect(elsewhere.text).toContain("| GiGPO | 2 |")
    await declare(0.9)
    await paper("whole")
    const after = await Promise.all(names.map(changed))
    expect(after.map((time, index) => time === before[index])).toEqual([false, true, false])
    await declare(0.1)
    await paper("whole")
  })

  it("continues where it was cut off, to the same numbers", { timeout: 240_000 }, async () => {
    const first = await paper("cut", "--minutes", "0.03")
    expect(first.text).toMatch(/of 4 runs are done/)
    for (
      let tries = 0;
      tries < 20 && (await paper("cut", "--minutes", "0.06")).text.includes("runs are done");
      tries++
    );
    await paper("cut")
    expect(withoutMachine(await numbers("cut"))).toEqual(withoutMachine(await numbers("whole")))
  })

  it("repeats a row to the digit, and says where a number is another", { timeout: 120_000 }, async () => {
    expect(await paper("whole", "--repeat", "line/GiGPO")).toMatchObject({
      code: 0,
      text: expect.stringMatching(/line\/GiGPO\/1: the same as in .*\n.*line\/GiGPO\/2: the same as in/),
    })
    const path = await kept("whole", ".json")
    await writeFile(path, (await readFile(path, "utf8")).replace(/"curve":\[\[0,[\d.]+\]/, '"curve":[[0,0.123]'))
    expect(await paper("whole", "--repeat", "line/GiGPO/1")).toMatchObject({
      code: 1,
      text: expect.stringContaining("line/GiGPO/1: NOT the same as in"),
    })
    expect((await paper("whole", "--repeat", "line/GiGPO/7")).text).toContain("There is no line/GiGPO/7")
  })

  it("rejects a table that there is not", async () => {
    expect((await paper("whole", "larger")).text).toContain("There is no table larger; known: small.")
  })
})
