import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type BenchmarkEvaluation, readEvaluation, writeEvaluation } from "../../src/benchmark/evaluation-file.ts"

let folder = ""
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-evaluation-"))
})
afterAll(() => rm(folder, { recursive: true }))

const digest = "0123456789abcdef".repeat(4)

/** Two tasks, twice each. */
function made(): BenchmarkEvaluation {
  return {
    header: {
      evaluation: 1,
      gigpo: "0.0.0",
      benchmark: "doors@1",
      digests: { environment: digest, prompt: digest, benchmark: digest },
      model: { name: "runs/a/model" },
      tasks: 2,
      repeats: 2,
      seed: 7,
      settings: { temperature: 0.4 },
    },
    episodes: ["red\u001b[31m", "blue"].flatMap((key, task) =>
      [0, 1].map((repeat) => ({
        ...{ task, repeat, key, outcome: "terminated" as const, success: repeat === 1 },
        ...{ return: repeat, steps: 3, metrics: { success: repeat } },
      })),
    ),
  }
}

describe("an evaluation's file", () => {
  it("with a key of an earlier version is rejected with the new key", async () => {
    const path = join(folder, "old.jsonl")
    const { header, episodes } = made()
    const { benchmark, ...rest } = header
    const lines = [{ ...rest, panel: benchmark }, ...episodes].map((line) => JSON.stringify(line))
    await writeFile(path, lines.join("\n"))
    await expect(readEvaluation(path)).rejects.toMatchObject({
      code: "BAD_DATA",
      message: `${path}, line 1: "panel" was renamed to "benchmark"; rename the key in the file.`,
    })
  })

  it("gives back what was written, a header and a line an episode", async () => {
    const path = join(folder, "whole.jsonl")
    await writeEvaluation(path, made())
    expect(await readEvaluation(path)).toEqual(made())
    const lines = (await readFile(path, "utf8")).split("\n")
    expect(lines).toHaveLength(6)
    expect(JSON.parse(lines[3]!)).toMatchObject({ key: "blue", repeat: 0 })
    // No escape reaches a terminal by way of `cat`.
    expect(lines.join("")).not.toContain("\u001b")
  })

  it.each<[string, RegExp, (lines: string[]) => string[]]>([
    ["is empty", /line 1: its form/, () => []],
    ["has no header", /line 1: its evaluation/, (lines) => lines.slice(1)],
    ["lacks an episode", /has 3 episodes, not 2 of each of 2 tasks/, (lines) => lines.slice(0, -1)],
    ["has one twice", /line 4: its task and repeat/, (lines) => lines.toSpliced(3, 0, lines[2]!)],
    [
      "names two tasks alike",
      /line 4: its key/,
      (lines) => lines.map((line) => line.replace('"blue"', '"red\\u001b[31m"')),
    ],
    [
      "names a task in two ways",
      /line 5: its key/,
      (lines) => lines.map((line, at) => (at === 4 ? line.replace("blue", "green") : line)),
    ],
    [
      "has a digest of another kind",
      /line 1: its digests/,
      (lines) => lines.map((line) => line.replace("0123", "x123")),
    ],
    [
      "has an outcome of its own",
      /line 2: its outcome/,
      (lines) => lines.map((line) => line.replace("terminated", "won")),
    ],
    [
      "has a return that is none",
      /line 3: its return/,
      (lines) => lines.map((line) => line.replace('"return":1', '"return":null')),
    ],
    ["is no JSON", /line 2 is not JSON/, (lines) => lines.map((line, at) => (at === 1 ? line.slice(0, -3) : line))],
  ])("is rejected where it %s", async (_, message, change) => {
    const path = join(folder, "changed.jsonl")
    await writeEvaluation(path, made())
    const lines = (await readFile(path, "utf8")).trimEnd().split("\n")
    await writeFile(path, change(lines).join("\n"))
    await expect(readEvaluation(path)).rejects.toMatchObject({
      code: "BAD_DATA",
      message: expect.stringMatching(message),
    })
  })

  it("is not written where it could not be read", async () => {
    const path = join(folder, "none.jsonl")
    const { header, episodes } = made()
    await expect(writeEvaluation(path, { header, episodes: episodes.slice(1) })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
    })
    await expect(readFile(path)).rejects.toMatchObject({ code: "ENOENT" })
  })
})
