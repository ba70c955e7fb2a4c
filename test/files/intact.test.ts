import { cp, mkdtemp, readdir, readFile, rename, rm, stat, truncate, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { Run } from "../../src/runs/run.ts"
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { train } from "../../src/training/train.ts"
import { openDoors, TinyModel } from "../training/tiny.ts"

const environment = openDoors()
const model = new TinyModel(environment)
const options = {
  iterations: 2,
  groups: 2,
  groupSize: 3,
  rollout: { maxCompletionTokens: 4 },
  checkpointEvery: 1,
  estimator: { name: "ppo" },
} as const

let folder: string
let run: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-intact-"))
  run = join(folder, "run")
  await trainIn(run)
  await trainIn(join(folder, "adapted"), { rank: 2 })
})
afterAll(async () => await rm(folder, { recursive: true }))

async function trainIn(directory: string, lora?: { readonly rank: number }): Promise<void> {
  const { policy, tokenizer } = await model.open(model.directory, { critic: true, ...(lora && { lora }) })
  await using opened = await Run.open(directory, options)
  await train({ policy, tokenizer, environment, run: opened, ...options })
  await opened.saveModel({ store: policy.store, files: tokenizer.files })
}

async function filesOf(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

/** What becomes of one file. */
const damages: Readonly<Record<string, (path: string) => Promise<void>>> = {
  "one bit flipped in the middle": async (path) => {
    const bytes = await readFile(path)
    bytes[bytes.length >> 1]! ^= 4
    await writeFile(path, bytes)
  },
  "the last byte cut off": async (path) => await truncate(path, (await stat(path)).size - 1),
  "nothing left": async (path) => await truncate(path, 0),
  "a byte more": async (path) => await writeFile(path, "\n", { flag: "a" }),
  gone: async (path) => await rm(path),
}

/** A line's end behind a manifest changes nothing that it says. */
const isSpace = (what: string) => ["a byte more", "the last byte cut off"].includes(what)

/** A copy of the run whose file was damaged. */
async function damaged(of: string, file: string, damage: (path: string) => Promise<void>): Promise<string> {
  const copy = await mkdtemp(join(folder, "damaged-"))
  await cp(of, copy, { recursive: true })
  await damage(join(copy, file.slice(of.length + 1)))
  return copy
}

const resume = async (directory: string): Promise<string[]> => {
  const warnings: string[] = []
  const opened = await Run.open(directory, options, { resume: true, onWarning: (text) => warnings.push(text) })
  expect(opened.iteration).toBe(1)
  await opened.close()
  return warnings
}

describe("a checkpoint with a changed file", () => {
  it.each(Object.entries(damages))(
    "is passed over when its run is resumed, and rejected as a fork: %s",
    async (what, damage) => {
      for (const of of ["run", "adapted"]) {
        const files = await filesOf(join(folder, of, "checkpoints", "iteration-2"))
        expect(files.length).toBeGreaterThan(8)
        for (const file of files) {
          if (isSpace(what) && basename(file) === "manifest.json") continue
          const copy = await damaged(join(folder, of), file, damage)
          const [warning] = await resume(copy)
          expect(warning, file).toContain("iteration-2 is damaged")
          expect(warning, file).toContain(basename(file))
          const fork = join(copy, "checkpoints", "iteration-2")
          await expect(Run.open(join(folder, "fork"), options, { fork }), file).rejects.toMatchObject({
            code: "RUN_CORRUPT",
            message: expect.stringContaining(join(copy, "checkpoints", "iteration-1")),
          })
          await rm(copy, { recursive: true })
        }
      }
    },
  )

  it("is passed over where a file that would be read was added, or the folder has another checkpoint's name", async () => {
    for (const name of ["chat_template.jinja", "model.safetensors.index.json", "added_tokens.json"]) {
      const copy = await damaged(run, join(run, "checkpoints", "iteration-2", name), (path) => writeFile(path, "{}"))
      expect((await resume(copy))[0]).toContain(`${name} was added`)
    }
    const copy = await damaged(run, join(run, "checkpoints"), async (path) => {
      await rename(join(path, "iteration-2"), join(path, "iteration-3"))
    })
    expect((await resume(copy))[0]).toContain("its manifest.json is of iteration 2")
  })

  it("can contain foreign files", async () => {
    const copy = await damaged(run, join(run, "checkpoints", "iteration-2", "notes.txt"), (path) =>
      writeFile(path, "mine"),
    )
    await (await Run.open(copy, options, { resume: true })).close()
    await using _ = await NativePolicy.open(join(copy, "checkpoints", "iteration-2"), { threads: 1 })
  })
})

/** Both must be opened to speak. */
async function openBoth(directory: string): Promise<void> {
  await using _ = await Tokenizer.open(directory)
  await using __ = await NativePolicy.open(directory, { threads: 1 })
}

describe("a model with a changed file", () => {
  const places = ["run/model", "run/checkpoints/iteration-2", "adapted/model", "adapted/checkpoints/iteration-2"]

  it.each(places)("is rejected by name, with the intact ones: %s", async (place) => {
    const directory = join(folder, place)
    await openBoth(directory)
    const files = (await readdir(directory)).filter((name) => /\.(json|safetensors|jinja)$/.test(name))
    expect(files).toEqual(expect.arrayContaining(["tokenizer.json", "tokenizer_config.json"]))
    for (const file of files)
      for (const [what, damage] of Object.entries(damages)) {
        const isManifest = ["gigpo.json", "manifest.json"].includes(file)
        // A manifest may be removed on purpose, but not that of a checkpoint.
        if (isManifest && (isSpace(what) || (what === "gone" && file === "gigpo.json"))) continue
        const of = join(folder, place.split("/")[0]!)
        const copy = await damaged(of, join(directory, file), damage)
        const opened = openBoth(join(copy, place.split("/").slice(1).join("/")))
        await expect(opened, `${file}: ${what}`).rejects.toMatchObject({
          code: expect.stringMatching(/BAD_MODEL|BAD_TOKENIZER/),
          message: expect.stringContaining(file),
        })
        await expect(opened).rejects.toThrow(/checkpoints\/iteration-\d of the same run is intact/)
        await rm(copy, { recursive: true })
      }
  })

  it("is rejected where one was added that would be read, and is not for others", async () => {
    const added: Readonly<Record<string, boolean>> = {
      "chat_template.jinja": true,
      "model.safetensors.index.json": true,
      "added_tokens.json": true,
      "README.md": false,
      "training_args.bin": false,
    }
    for (const [name, refused] of Object.entries(added)) {
      const copy = await damaged(run, join(run, "model", name), (path) => writeFile(path, "{}"))
      const opened = openBoth(join(copy, "model"))
      if (refused) await expect(opened).rejects.toThrow(`${name} was added`)
      else await opened
    }
  })

  it("is taken where its manifest was removed, on purpose", async () => {
    const copy = await damaged(run, join(run, "model", "gigpo.json"), (path) => rm(path))
    await damages["one bit flipped in the middle"]!(join(copy, "model", "model.safetensors"))
    await openBoth(join(copy, "model"))
  })

  it("is rejected when it was swapped with that of another", async () => {
    const copy = await damaged(run, join(run, "model", "model.safetensors"), (path) =>
      cp(join(run, "checkpoints", "iteration-1", "model.safetensors"), path),
    )
    await expect(openBoth(join(copy, "model"))).rejects.toThrow("model.safetensors was changed")
  })

  it("is rejected by all that reads into a policy that is open, which stays usable", async () => {
    const { policy } = await model.open(model.directory)
    const adapted = await model.open(model.directory, { lora: { rank: 2 } })
    const flip = damages["one bit flipped in the middle"]!
    const step = (of: string, ...names: string[]) => join(folder, of, "checkpoints", "iteration-2", ...names)
    const flipped = async (of: string, ...names: string[]) =>
      join(await damaged(join(folder, of), step(of, ...names), flip), "checkpoints", "iteration-2")
    const plain = await flipped("run", "model.safetensors")
    const adapter = await flipped("adapted", "adapter_model.safetensors")
    const moments = await flipped("run", "optimizer", "model.safetensors")
    const before = await model.weights(policy)
    await expect(policy.load(plain)).rejects.toMatchObject({ code: "BAD_MODEL" })
    await expect(policy.store.restore({ optimizerSteps: 1 }, plain)).rejects.toMatchObject({ code: "BAD_MODEL" })
    await expect(policy.store.restore({ optimizerSteps: 1 }, moments)).rejects.toMatchObject({ code: "BAD_MODEL" })
    await expect(policy.loadOptimizer(join(moments, "optimizer"), 1)).rejects.toMatchObject({ code: "BAD_MODEL" })
    await expect(adapted.policy.loadAdapter(adapter)).rejects.toMatchObject({ code: "BAD_MODEL" })
    await expect(NativePolicy.open(adapter)).rejects.toMatchObject({ code: "BAD_MODEL" })
    expect(await model.weights(policy)).toBe(before)
    await policy.loadOptimizer(step("run", "optimizer"), 1)
    expect(dirname(plain)).toMatch(/checkpoints$/)
  })
})

describe("a file that was compared once", () => {
  it("is compared again when it was changed since", async () => {
    const copy = await damaged(run, join(run, "model"), async () => {})
    const path = join(copy, "model", "model.safetensors")
    await openBoth(join(copy, "model"))
    await damages["one bit flipped in the middle"]!(path)
    await expect(openBoth(join(copy, "model"))).rejects.toThrow("was changed")
  })
})
