import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Command } from "commander"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import type { Algorithm } from "../../src/algorithms/algorithm.ts"
import { algorithms } from "../../src/algorithms/algorithms.ts"
import { bring } from "../../src/algorithms/bring.ts"
import { settingsOf } from "../../src/algorithms/settings-for.ts"
import { addCommands } from "../../src/cli/commands.ts"

// Every algorithm of the table that is implemented trains two iterations through the command line, on shipped environments: with its
// settings alone, or with an input that the page docs/algorithms.md shows how to bring. Only sizes are set besides.

const sizes = [
  "threads=2",
  "initialModel.hiddenSize=32",
  "initialModel.layers=1",
  "initialModel.heads=2",
  "initialModel.vocabularySize=300",
  "initialModel.maxPositions=1024",
  "training.iterations=2",
  "training.groups=2",
  "training.groupSize=4",
  "training.stepsPerUpdate=8",
  "training.critic.stepsPerUpdate=8",
  "training.rollout.maxCompletionTokens=24",
  "training.rollout.maxSteps=3",
  "training.evaluation.every=0",
  "sft.tasks=4",
  "sft.epochs=2",
  "sft.completionsPerUpdate=4",
]
const sets = (settings: readonly string[]) => settings.flatMap((one) => ["--set", one])

const root = process.cwd()
let folder: string
let printed: string[] = []

/** Runs a command of gigpo in this process. */
async function gigpo(...words: string[]): Promise<void> {
  printed = []
  const program = addCommands(new Command("gigpo").exitOverride(), (command) => void command.exitOverride())
  await program.parseAsync(words, { from: "user" })
}

/** Trains, and checks that each iteration or epoch gave finite numbers. */
async function trains(words: readonly string[], settings: readonly string[]): Promise<void> {
  const [command] = words
  await gigpo(...words, ...sets([...sizes, ...settings]), ...(command === "train" ? ["--json"] : []))
  const text = printed.join("")
  if (command === "sft") return expect(text).toMatch(/epoch 2\/2 .*loss \d/)
  const reports = text.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []))
  const numbers = reports.flatMap(({ metrics }) => Object.entries(metrics))
  expect(reports).toHaveLength(2)
  expect(numbers.filter(([, one]) => !Number.isFinite(one))).toEqual([])
}

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "gigpo-table-")))
  process.chdir(folder)
  vi.spyOn(process.stdout, "write").mockImplementation((text) => printed.push(String(text)) > 0)
  vi.spyOn(process.stderr, "write").mockImplementation(() => true)
  for (const name of ["sokoban", "alfworld", "search"]) await gigpo("init", name, name, ...sets(sizes))
})
afterAll(() => {
  vi.restoreAllMocks()
  process.chdir(root)
  rmSync(folder, { recursive: true })
})

const there = algorithms.filter(({ status }) => ["exact", "partial", "interpreted"].includes(status))
const alone = there.filter(({ brings }) => brings === undefined)

describe("with its settings alone", () => {
  it.each(alone.map((algorithm, at) => [algorithm.system, algorithm, `run-${at}`] as const))(
    "%s",
    async (_, algorithm, run) => {
      const { environments: [environment = "sokoban"] = [] } = algorithm
      const file = `${environment}/config.yaml`
      if (clones(algorithm)) await trains(["sft", file, "--out", run], settingsOf(algorithm))
      else await trains(["train", file], [...settingsOf(algorithm), `run=${run}`])
    },
  )
})

describe("with what the page says to bring", () => {
  const named = Object.keys(bring) as (keyof typeof bring)[]
  const needing = (name: keyof typeof bring) => there.filter(({ brings }) => brings === name)

  it.each(named)("%s: the example is of an algorithm that needs it, and has at most 15 lines", (name) => {
    const { files = {}, commands, settings } = bring[name]
    expect(needing(name).map(settingsOf)).toContainEqual(expect.arrayContaining([...settings]))
    expect([...Object.values(files), ...commands, ""].join("\n").split("\n").length).toBeLessThanOrEqual(15)
  })

  const each = named.flatMap((name) => needing(name).map((algorithm) => [algorithm.system, name, algorithm] as const))
  it.each(each)("%s, which needs: %s", async (system, name, algorithm) => {
    const { files = {}, commands, use } = bring[name]
    const answer = { choices: [{ message: { content: JSON.stringify({ scores: [0.2, 0.4, 0.6, 0.8] }) } }] }
    const judge = createServer((_, response) => response.end(JSON.stringify(answer)))
    await once(judge.listen(0, "127.0.0.1"), "listening")
    const { port } = judge.address() as AddressInfo
    const place = join(folder, system.replace(/\W+/g, "-"))
    mkdirSync(place)
    process.chdir(place)
    try {
      for (const [file, content] of Object.entries(files)) writeFileSync(file, content)
      for (const command of commands) {
        const [program, ...words] = command.replace("node_modules/gigpo", root).split(" ").slice(1)
        if (program === "gigpo") await gigpo(...words, ...sets(sizes))
        else execFileSync(join(root, "node_modules/.bin", program!), words)
      }
      const server = name === "judge" ? [`training.rolloutHooks.url=http://127.0.0.1:${port}/v1`] : []
      const words = use.split(" ").map((word) => word.replaceAll("'", ""))
      await trains(words.slice(2), [...settingsOf(algorithm), ...server])
    } finally {
      process.chdir(folder)
      judge.close()
    }
  })
})

function clones({ set = {} }: Algorithm): boolean {
  return Object.keys(set).some((key) => key.startsWith("sft."))
}
