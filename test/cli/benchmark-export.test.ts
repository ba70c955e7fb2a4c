import { mkdtemp, readdir, readFile, realpath, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo } from "./gigpo.ts"

describe.skipIf(!built)("gigpo benchmark export (needs dist: npm run build:ts)", () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-benchmark-export-"))
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))
  const exported = (...words: string[]) => gigpo(["benchmark", "export", ...words], { cwd: folder })

  it("writes the households of a benchmark, and prints the folder", async () => {
    const { code, stdout, stderr } = await exported("households/unseen@1", "--out", "games")
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/^households\/unseen@1: 134 games, environment [0-9a-f]{16}\.\n$/),
    })
    expect(stdout).toBe(`${join(await realpath(folder), "games", "json_2.1.1")}\n`)
    const { games, files } = JSON.parse(await readFile(join(folder, "games", "gigpo.json"), "utf8"))
    expect(Object.keys(games)).toHaveLength(134)
    expect(files).toHaveLength(268)
    const again = await exported("households/unseen@1", "--out", "games")
    expect(again).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(/already exists.*--overwrite/) })
  })

  it.each([
    [["cards/ez-points@1", "--out", "cards"], /has no generated households/],
    [["households/none@1", "--out", "none"], /There is no benchmark/],
  ])("rejects %j", async (words, message) => {
    expect(await exported(...words)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(message) })
    expect(await readdir(folder)).not.toContain(words[2])
  })
})
