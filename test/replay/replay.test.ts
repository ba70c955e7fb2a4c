import { existsSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { readRecording } from "./recording.ts"
import { replay, replays } from "./run.ts"

const shared = fileURLToPath(new URL("../../../shared/data", import.meta.url))

// What the original engines did, step by step, and how many steps that is.
const recordings = [
  ["webshop", "webshop", "webshop/traces_goal.jsonl.gz", 709],
  ["webshop", "webshop", "webshop/traces_random.jsonl.gz", 1126],
  ["webshop-ranking", "webshop", "webshop/lucene_rankings.jsonl.gz", 501],
  ["search-similarity", "search", "search/difflib_ratios.jsonl.gz", 120],
  ["search-similarity", "search", "search/qa_normalize.jsonl", 25],
  ["sokoban", "sokoban", "sokoban/rooms.jsonl.gz", 196],
] as const

describe("recordings of the original engines", () => {
  for (const [name, data, file, steps] of recordings) {
    const there = existsSync(join(shared, file))
    const reason = there ? "" : ` (skipped: ../shared/data/${file} is not there)`
    it.skipIf(!there)(`${name}, ${file}: all ${steps} steps are equal${reason}`, async () => {
      const report = await replay(name, join(shared, data), join(shared, file))
      expect(report).toEqual({ steps, differences: 0, first: [] })
    })
  }
})

describe("replay", () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-replay-"))
  })
  afterAll(() => rm(folder, { recursive: true }))

  const write = async (name: string, lines: readonly unknown[]) => {
    const text = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n")
    const path = join(folder, name)
    await writeFile(path, name.endsWith(".gz") ? gzipSync(text) : text)
    return path
  }
  const room = { seed: 3, dim: [6, 6], boxes: 1, depth: 30 }

  it("counts the steps that differ and shows the first of them", async () => {
    const path = await write("wrong.jsonl.gz", [{ ...room, error: "no" }, "", { ...room, error: "nor" }])
    const report = await replay("sokoban", folder, path, 1)
    expect(report).toMatchObject({ steps: 2, differences: 2 })
    expect(report.first).toHaveLength(1)
    expect(report.first[0]).toMatchObject({ where: "seed 3: error", expected: '"no"' })
  })

  it("sees a wrong cell, a solution that does not solve and one that is too long", async () => {
    const { generateRoom } = await import("../../src/environment/sokoban/generate.ts")
    const { solve } = await import("../../src/environment/sokoban/solve.ts")
    const { directions } = await import("../../src/environment/sokoban/room.ts")
    const made = generateRoom(3, { size: [6, 6], boxes: 1, searchDepth: 30 })
    if (typeof made === "string") throw new Error(made)
    const rows = (cells: number[]) => Array.from({ length: 6 }, (_, row) => cells.slice(6 * row, 6 * row + 6))
    const cells = Array.from(made.cells)
    const fixed = rows(cells.map((cell) => (cell === 0 ? 0 : cell === 2 || cell === 3 || cell === 6 ? 2 : 1)))
    const state = rows(cells.map((cell) => (cell === 6 ? 5 : cell)))
    const solution = solve(made)!.map((direction) => directions.indexOf(direction) + 1)
    const differences = async (change: object) => {
      const path = await write("room.jsonl", [{ ...room, fixed, state, solution, ...change }])
      return (await replay("sokoban", folder, path)).first.map(({ where }) => where)
    }
    expect(await differences({})).toEqual([])
    expect(await differences({ state: fixed })).toEqual(["seed 3: start"])
    expect(await differences({ fixed: state })).toEqual(["seed 3: walls and targets"])
    const back = { 1: 2, 2: 1, 3: 4, 4: 3 }[solution[0]!]!
    expect(await differences({ solution: [back] })).toContain("seed 3: moves that solve it")
    expect(await differences({ solution: [] })).toContain("seed 3: length of a shortest solution")
  })

  it("names what it cannot do", async () => {
    await expect(replay("chess", folder, "x")).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: `There is no replay "chess"; known: ${Object.keys(replays).join(", ")}.`,
    })
    await expect(replay("toString", folder, "x")).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    await expect(replay("sokoban", folder, join(folder, "none.gz"))).rejects.toMatchObject({ code: "BAD_DATA" })
    const broken = await write("broken.jsonl", [room, "{"])
    await expect(replay("sokoban", folder, broken)).rejects.toMatchObject({
      code: "BAD_DATA",
      message: expect.stringContaining("line 2"),
    })
    const notPacked = join(folder, "plain.gz")
    await writeFile(notPacked, "{}\n")
    await expect(readRecording(notPacked).next()).rejects.toMatchObject({ code: "BAD_DATA" })
  })
})
