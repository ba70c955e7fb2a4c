import { readFileSync, writeFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { episodesPath } from "../../../src/view/record/folder.ts"
import { readEpisodes, readGroup, readRecordedIterations } from "../../../src/view/record/read.ts"
import { all } from "../../training/tiny.ts"
import {
  bomb,
  type Forged,
  type ForgedPart,
  type Json,
  type Packed,
  packedText,
  readForged,
  readParts,
  writeForged,
  writeParts,
} from "./forged.ts"
import { plainGroups, record } from "./groups.ts"

let run: string
let good: Forged
beforeEach(async () => {
  run = await mkdtemp(join(tmpdir(), "gigpo-forged-"))
  await record(
    run,
    [1, 2].map((iteration) => [iteration, plainGroups(2)] as const),
  )
  good = await readForged(episodesPath(run, 1))
})
afterEach(() => rm(run, { recursive: true }))

/** So much may be taken beside what a process has: some constant, and a multiple of what is read. */
const most = 250 * 2 ** 20
/** Peak of resident memory since `forgetPeak`; since the start of the process where the system has no such count. */
const peak = () => {
  const [, kibibytes] = linux ? (/^VmHWM:\s*(\d+)/m.exec(readFileSync("/proc/self/status", "latin1")) ?? []) : []
  return 1024 * Number(kibibytes ?? process.resourceUsage().maxRSS)
}
const forgetPeak = () => linux && writeFileSync("/proc/self/clear_refs", "5")
const linux = process.platform === "linux"

/** The file is rejected by its name whatever is read of it, for this reason, in little memory, and the others are read. */
async function refused(file: Parameters<typeof writeForged>[2], reason = ""): Promise<void> {
  await writeForged(run, 1, file)
  forgetPeak()
  const before = peak()
  const message = new RegExp(`iteration-1\\.episodes cannot be read \\(${reason}`)
  const fault = { code: "RUN_CORRUPT", message: expect.stringMatching(message) }
  await expect(all(readEpisodes(run))).rejects.toMatchObject(fault)
  await expect(readGroup(run, 1, 0)).rejects.toMatchObject(fault)
  expect(peak() - before).toBeLessThan(most)
  expect(await all(readEpisodes(run, { from: 2 }))).toHaveLength(2)
}

/** One column, and what it says then. */
const changed = (name: string, change: (values: number[], part: ForgedPart) => number[]): Buffer => {
  const parts = readParts(good.blocks[0]!)
  const column = parts[0]!.arrays[name]!
  column.values = change(column.values, parts[0]!)
  return writeParts(parts)
}

it("is read as it was written, where nothing is changed", async () => {
  const before = await all(readEpisodes(run))
  await writeForged(run, 1, { summary: good.summary, blocks: good.blocks.map((block) => writeParts(readParts(block))) })
  expect(await all(readEpisodes(run))).toEqual(before)
})

const shared = (values: number[], part: ForgedPart) => {
  part.arrays.prompts!.values.pop() // so that the columns have the lengths that they declare
  return [1, ...values.slice(1)]
}
it.each<[string, string, Parameters<typeof changed>[1], string]>([
  ["a prompt of 400 million tokens", "promptTokens", ([, ...rest]) => [400_000_000, ...rest], "its prompts is not"],
  ["a reply of 400 million tokens", "replyTokens", ([, ...rest]) => [400_000_000, ...rest], "its replies is not"],
  ["more shared tokens than prompts", "shared", ([, ...rest]) => [1000, ...rest], "its prompts is not"],
  ["a prompt that shares what is not there", "shared", shared, "a prompt shares more tokens"],
  ["negative counts", "promptTokens", ([first, ...rest]) => [-first!, ...rest], "it has a negative count"],
  ["a token that is not there", "prompts", ([, ...rest]) => [65_535, ...rest], ""],
  ["a text that is not there", "observation", ([, ...rest]) => [99, ...rest], "it refers to a text"],
  ["a column that is too short", "rewards", (values) => values.slice(1), "its rewards is not a column"],
  ["a column that is too long", "logProbs", (values) => [...values, 0], "its logProbs is not a column"],
  ["tokens beyond their bytes", "tokenLengths", ([first, ...rest]) => [first! + 1, ...rest], "its tokenBytes is not"],
])("is rejected with %s", async (_, name, change, reason) => {
  await refused({ summary: good.summary, blocks: [changed(name, change)] }, reason)
})

const ofEpisodes = (change: Json) => (about: Json) => ({
  ...about,
  episodes: (about.episodes as Json[]).map((one) => ({ ...one, ...change })),
})

it.each<[string, (about: Json) => Json]>([
  ["no episodes", ({ episodes: _, ...rest }) => rest],
  ["metrics of text", ofEpisodes({ metrics: "x" })],
  ["an unknown outcome", ofEpisodes({ outcome: "won" })],
  ["more steps than it has", ofEpisodes({ steps: 9 })],
  ["a task that is nested deep", (about) => ({ ...about, task: nested(5000) })],
  ["a last observation without text", ofEpisodes({ last: {} })],
  ["an error that is no text", ofEpisodes({ error: {} })],
  ["an attempt that is no number", ofEpisodes({ attempt: "1" })],
  ["a branch of nothing", ofEpisodes({ branch: {} })],
  ["metrics of more steps than it has", ofEpisodes({ stepMetrics: [{}, {}, {}, {}, {}] })],
])("is rejected where an account has %s", async (_, change) => {
  const parts = readParts(good.blocks[0]!)
  parts[0]!.about = change(parts[0]!.about)
  await refused({ summary: good.summary, blocks: [writeParts(parts)] })
})

it("leaves out what no version writes", async () => {
  const parts = readParts(good.blocks[0]!)
  parts[0]!.about = { ...parts[0]!.about, strange: JSON.parse(nested(5000)) }
  const strange = writeParts(parts.map(({ about, arrays }) => ({ about: { ...about, strange: 1 }, arrays })))
  await writeForged(run, 1, { summary: good.summary, blocks: [strange] })
  const [group] = await all(readEpisodes(run))
  expect(Object.keys(group!)).toEqual(["iteration", "group", "task", "episodes"])
})

it("is rejected where prompts that share their beginning take far more than the file", async () => {
  const parts = readParts(good.blocks[0]!)
  const [{ about, arrays }] = parts as [ForgedPart]
  const [steps, long] = [20_000, 50_000]
  const episodes = [{ ...(about.episodes as Json[])[0], steps }]
  const wide = Object.fromEntries(
    Object.entries(arrays).map(([name, { type, values }]) => {
      const isOfSteps = values.length === arrays.rewards!.values.length
      return [name, { type, values: isOfSteps ? Array(steps).fill(values[0]) : values }]
    }),
  )
  wide.promptTokens!.values = Array(steps).fill(long)
  wide.shared!.values = [0, ...Array(steps - 1).fill(long)]
  wide.prompts!.values = Array(long).fill(0)
  wide.replyTokens!.values = [...Array(steps - 1).fill(0), 0]
  for (const name of ["replies", "logProbs"]) wide[name]!.values = []
  const block = writeParts([{ about: { ...about, episodes }, arrays: wide }])
  await refused({ summary: good.summary, blocks: [block] }, "its texts are too long")
})

it("is rejected where a block says that it is a gigabyte long", async () => {
  await refused({ summary: good.summary, blocks: [await bomb(2 ** 30)] }, "its blocks are wrong")
})

it("is rejected where a block is longer than it says", async () => {
  const block = { ...(await bomb(2 ** 30)), length: 1000 }
  await refused({ summary: good.summary, blocks: [block] }, "Cannot create a Buffer larger than 1000 bytes")
})

it("is rejected where many blocks together are too long", async () => {
  const block = await bomb(60 * 2 ** 20)
  await refused({ summary: good.summary, blocks: Array(20).fill(block) }, "its blocks are too long for its size")
})

it("is rejected where blocks lie over one another", async () => {
  const blocks = [{ offset: 8 }, { offset: 8 }]
  const twice = [good.blocks[0]!, good.blocks[0]!]
  await refused({ summary: { ...good.summary, blocks }, blocks: twice }, "its blocks are wrong")
})

it("is rejected where its summary is a gigabyte of blanks", async () => {
  await refused({ summary: await bomb(2 ** 30), blocks: good.blocks }, "Cannot create a Buffer larger than")
})

it.each<[string, (summary: Json) => Json | Packed]>([
  ["is a million lists", () => packedText(`[${"[],".repeat(1_000_000)}[]]`)],
  ["is nested deep", () => packedText(nested(50_000))],
  ["is null", () => packedText("null")],
  ["has columns of different lengths", (summary) => ({ ...summary, member: [0] })],
  ["names a task that is not there", (summary) => ({ ...summary, task: [9, 9, 9, 9] })],
  ["has an unknown outcome", (summary) => ({ ...summary, outcome: ["x", 0, 0, 0] })],
  ["is of another iteration", (summary) => ({ ...summary, iteration: 7 })],
  ["has no blocks", (summary) => ({ ...summary, blocks: [{ offset: 1e15 }] })],
])("is rejected where its summary %s", async (_, change) => {
  await refused({ summary: change(good.summary), blocks: good.blocks })
  const fault = { code: "RUN_CORRUPT", message: expect.stringMatching(/iteration-1\.episodes/) }
  await expect(readRecordedIterations(run)).rejects.toMatchObject(fault)
  const told: unknown[] = []
  expect(await readRecordedIterations(run, { onUnreadable: (error) => told.push(error) })).toHaveLength(1)
  expect(told).toEqual([expect.objectContaining(fault)])
})

function nested(deep: number): string {
  return "[".repeat(deep) + "]".repeat(deep)
}
