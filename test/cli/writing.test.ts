import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { checkTarget } from "../../src/files/atomic-directory.ts"
import { built, casesAt, gigpo, tiny } from "./gigpo.ts"

const faultyDisk = new URL("../process/programs/faulty-disk.mjs", import.meta.url).href
const brief = ["training.evaluation.every=0", "training.iterations=3", "seed=7"].flatMap((one) => ["--set", one])
const train = (...words: string[]) => ["train", "small/config.yaml", ...brief, ...words]

/** What writes, where its model goes, and how it is done again after it failed. */
const commands: Record<string, { words: string[]; model: string; again?: string[] }> = {
  "init, into a new folder": { words: ["init", "sokoban", "made", ...tiny], model: "made/model" },
  "sft, into a new folder": {
    words: ["sft", "small/config.yaml", "--out", "made"],
    model: "made",
    again: ["sft", "small/config.yaml", "--out", "made", "--overwrite"],
  },
  "sft, over an older model among others' files": {
    words: ["sft", "small/config.yaml", "--out", "old", "--overwrite"],
    model: "old",
  },
  // Done again it might begin with what it has learned.
  "sft, in place": { words: ["sft", "small/config.yaml", "--in-place"], model: "small/model", again: [] },
  "train, into a new folder": {
    words: train("--set", "run=made"),
    model: "made/model",
    again: train("--set", "run=made", "--resume", "auto"),
  },
  "train, over an older run among others' files": { words: train("--overwrite"), model: "small/run/model" },
  "train, going on": {
    words: train("--resume", "--set", "seed=0", "--set", "training.iterations=4"),
    model: "small/run/model",
  },
  "train, as a fork": {
    words: train("--set", "run=made", "--fork", "small/run", "--set", "training.iterations=4"),
    model: "made/model",
    again: train("--set", "run=made", "--fork", "small/run", "--set", "training.iterations=4", "--resume", "auto"),
  },
}

describe.skipIf(!built)("writing of folders (needs dist: npm run build:ts)", () => {
  let folder: string
  let before: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-writing-"))
    before = join(folder, "before")
    await mkdir(before)
    for (const words of [
      ["init", "sokoban", "small", ...tiny],
      ["sft", "small/config.yaml", "--out", "old", "--set", "sft.epochs=1"],
      train("--set", "seed=0"),
    ])
      expect(await gigpo(words, { cwd: before })).toMatchObject({ code: 0 })
    const places = [
      ".",
      "small",
      "small/model",
      "small/run",
      "small/run/checkpoints",
      "small/run/model",
      "old",
      "old/.git",
    ]
    for (const place of places) {
      await mkdir(join(before, place), { recursive: true })
      await writeFile(join(before, place, "thesis.md"), `mine in ${place}`)
    }
  })
  afterAll(async () => await rm(folder, { recursive: true }))

  /** Every file below a folder, with its bytes. */
  async function contents(of: string): Promise<Record<string, string>> {
    const entries = await readdir(of, { withFileTypes: true, recursive: true })
    const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
    const read = async (path: string) => [relative(of, path), await readFile(path, "base64")] as const
    return Object.fromEntries(await Promise.all(paths.map(read)))
  }
  const foreign = (files: Record<string, string>) =>
    Object.entries(files).filter(([name]) => name.endsWith("thesis.md"))

  async function work(cwd: string, words: readonly string[], fault = "") {
    const counted = join(folder, "writes")
    const env = { NODE_OPTIONS: `--import=${faultyDisk}`, GIGPO_TEST_DISK: fault, GIGPO_TEST_WRITES: counted }
    const outcome = await gigpo(words, { cwd, env })
    return { ...outcome, writes: fault === "" ? Number(await readFile(counted, "utf8")) : 0 }
  }

  /** Weights at `model` after the next process has recovered them; undefined if there are none. */
  async function weightsOf(cwd: string, model: string): Promise<string | undefined> {
    await checkTarget(join(cwd, model), { overwrite: true })
    return await readFile(join(cwd, model, "model.safetensors"), "base64").catch(() => undefined)
  }

  async function copy(): Promise<string> {
    const made = await mkdtemp(join(folder, "copy-"))
    await cp(before, made, { recursive: true })
    return made
  }

  it.each(Object.entries(commands).map(([name, command], at) => [name, at, command] as const))(
    "%s: keeps foreign files and either the old or the new result, whatever happens to the disk",
    async (_, at, { words, model, again = words }) => {
      const [start, whole] = [await contents(before), await copy()]
      const { code, stderr, writes } = await work(whole, words)
      expect(code, stderr).toBe(0)
      expect(foreign(await contents(whole))).toEqual(foreign(start))
      const [old, expected] = [await weightsOf(before, model), await weightsOf(whole, model)]
      expect(expected).not.toBe(old)

      const readOnly = await copy()
      const refused = await work(readOnly, words, "EROFS:0")
      expect(refused).toMatchObject({ code: 4, stderr: expect.stringMatching(/read-only/) })
      expect(await contents(readOnly)).toEqual(start)

      const share = (part: number) => Math.floor(part * (writes - 1))
      const faults = [
        ...casesAt([0.3, 0.7, 0.97, 1], at).map((part) => `kill:${share(part)}`),
        ...casesAt([0.1, 0.6], at >> 2).map((part) => `ENOSPC:${share(part)}`),
      ]
      for (const fault of faults) {
        const hurt = await copy()
        const { code, stderr } = await work(hurt, words, fault)
        if (fault.startsWith("kill")) expect(code).toBeNull()
        else expect({ code, stderr }).toMatchObject({ code: 4, stderr: expect.stringMatching(/the disk is full/) })
        expect(foreign(await contents(hurt)), fault).toEqual(foreign(start))
        if (!model.includes("/run/")) expect([old, expected], fault).toContain(await weightsOf(hurt, model))
        if (again.length > 0) {
          const there = await readdir(join(hurt, "made")).catch(() => [])
          // A folder that was made whole is rejected by what wants a new one.
          if (!(words[0] === "init" && there.length > 0))
            expect(await work(hurt, again), fault).toMatchObject({ code: 0 })
          expect(await weightsOf(hurt, model), fault).toBe(expected)
        }
        expect(foreign(await contents(hurt)), fault).toEqual(foreign(start))
        await rm(hurt, { recursive: true })
      }
    },
  )
})
