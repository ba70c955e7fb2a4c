import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { NativePolicy, readPolicyConfig } from "../../src/engine/native/native-policy.ts"
import { RemoteEngine } from "../../src/engine/remote/remote-engine.ts"
import { writeDirectory } from "../../src/files/atomic-directory.ts"
import { checkCopied, copyInto } from "../../src/model-files/copied-files.ts"
import { madeFor } from "../../src/model-files/made-for.ts"
import { newestModel } from "../../src/model-files/run-models.ts"
import { recover } from "../../src/runs/recover.ts"
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { openDoors, TinyModel } from "../training/tiny.ts"
import { kinds, outcomeOf, putLink, remove, secret, tree } from "./links.ts"

const model = new TinyModel(openDoors())
const templates = "additional_chat_templates"
let root: string
/** A model that gigpo wrote, and the same from elsewhere: without its manifest. */
let managed: string
let foreign: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "gigpo-received-"))
  managed = join(root, "managed")
  foreign = join(root, "foreign")
  await writeDirectory(managed, async (temporary) => {
    for (const name of await readdir(model.directory))
      if (name !== "gigpo.json") await cp(join(model.directory, name), join(temporary, name))
    await mkdir(join(temporary, templates))
    await writeFile(join(temporary, templates, "rag.jinja"), "{{ messages }}")
    await mkdir(join(temporary, "optimizer"))
    await cp(join(model.directory, "model.safetensors"), join(temporary, "optimizer", "model.safetensors"))
  })
  await cp(managed, foreign, { recursive: true })
  await rm(join(foreign, "gigpo.json"))
})
afterAll(async () => await rm(root, { recursive: true }))

const files = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"]
const deeper = ["optimizer", "optimizer/model.safetensors", templates, `${templates}/rag.jinja`]
const beside = ["chat_template.jinja", "vocab.json", "merges.txt", "adapter_config.json", "remote.json", ".gigpo-ready"]
const levels = [...files, ...deeper, ...beside, "gigpo.json"]

const opened = async (open: Promise<AsyncDisposable>) => await (await open)[Symbol.asyncDispose]()
const engine = { url: "http://127.0.0.1:9", model: "m", key: "tml-key-of-no-server" }

const calls: readonly [string, (directory: string) => Promise<unknown>][] = [
  ["Tokenizer.open", (directory) => opened(Tokenizer.open(directory))],
  ["NativePolicy.open", (directory) => opened(NativePolicy.open(directory, { threads: 1, training: false }))],
  ["readPolicyConfig", (directory) => readPolicyConfig(directory)],
  ["newestModel", (directory) => newestModel(directory)],
  ["madeFor", (directory) => madeFor(directory)],
  ["RemoteEngine.open", (directory) => RemoteEngine.open(directory, engine)],
  [
    "writeDirectory over it",
    (directory) => {
      const fill = async (temporary: string) => await cp(foreign, temporary, { recursive: true })
      return writeDirectory(directory, fill, { overwrite: true })
    },
  ],
  ["recover", recover],
]
/** These look at the manifest alone, and at what they write. */
const looksAtLess: readonly string[] = ["madeFor", "recover", "writeDirectory over it", "RemoteEngine.open"]

describe.skipIf(process.platform === "win32")("a model's folder from elsewhere", () => {
  describe.each(calls)("%s", (name, call) => {
    it.each(kinds)("does not change files outside, and is rejected if gigpo wrote the folder: %s", async (kind) => {
      for (const level of levels) {
        const place = await putLink(managed, level, kind)
        const before = await tree(place.outside)
        const { code, text } = await outcomeOf(() => call(place.folder))
        expect(await tree(place.outside), level).toEqual(before)
        expect(text).not.toContain(secret)
        if (!looksAtLess.includes(name)) expect.soft(code, level).toBe("UNSAFE_PATH")
        else expect.soft(code, level).toMatch(/^(done|[A-Z_]+)$/)
        await remove(place)
      }
    })
  })

  it.each(files)("waits for no pipe in a folder that gigpo did not write: %s", async (level) => {
    for (const [, call] of calls.slice(0, 4)) {
      const place = await putLink(foreign, level, "pipe")
      expect((await outcomeOf(() => call(place.folder))).code).toBe("UNSAFE_PATH")
      await remove(place)
    }
  })

  it.each(["absolute", "relative", "chained"] as const)(
    "is read with a user's own links to files: %s",
    async (kind) => {
      for (const level of kind === "relative" ? [] : [...files, `${templates}/rag.jinja`]) {
        const place = await putLink(foreign, level, kind)
        for (const [, call] of calls.slice(0, 3))
          expect(await outcomeOf(() => call(place.folder))).toMatchObject({ code: "done" })
        await remove(place)
      }
    },
  )

  it("is read and copied from the Hugging Face cache, in which every file is a link to a blob", async () => {
    for (const source of [foreign, managed]) {
      const repository = join(await realpath(await mkdtemp(join(tmpdir(), "gigpo-hub-"))), "models--someone--model")
      const snapshot = join(repository, "snapshots", "0123456789abcdef")
      await mkdir(join(snapshot, ".."), { recursive: true })
      await mkdir(join(repository, "blobs"))
      await cp(source, snapshot, { recursive: true })
      for (const [path, content] of Object.entries(await tree(snapshot))) {
        if (content === "folder") continue
        const up = path.slice(snapshot.length + 1).split("/").length + 1
        const blob = `${path.includes("optimizer") ? "o-" : ""}${basename(path)}`
        await rename(path, join(repository, "blobs", blob))
        await symlink(join(...Array(up).fill(".."), "blobs", blob), path)
      }
      for (const [, call] of calls.slice(0, 5))
        expect(await outcomeOf(() => call(snapshot))).toMatchObject({ code: "done" })
      await using tokenizer = await Tokenizer.open(snapshot)
      const copy = join(repository, "copy")
      await mkdir(copy)
      await copyInto(copy, tokenizer.files)
      expect(await readFile(join(copy, templates, "rag.jinja"), "utf8")).toBe("{{ messages }}")
      // A blob of another repository, or one that is a link itself, is none.
      await writeFile(join(repository, "..", "victim"), secret)
      await rm(join(repository, "blobs", "tokenizer.json"))
      await symlink("../../victim", join(repository, "blobs", "tokenizer.json"))
      await expect(copyInto(join(repository, "other"), tokenizer.files)).rejects.toMatchObject({ code: "UNSAFE_PATH" })
      await rm(join(repository, ".."), { recursive: true })
    }
  })

  it("copies no file from outside, and reports this before anything is written", async () => {
    for (const kind of ["absolute", "chained", "directory"] as const) {
      for (const level of ["tokenizer.json", templates, `${templates}/rag.jinja`]) {
        const place = await putLink(foreign, level, kind)
        const copied = [join(place.folder, level === "tokenizer.json" ? level : `${templates}/rag.jinja`)]
        if (kind !== "directory" || level === "tokenizer.json")
          await expect(checkCopied(copied)).rejects.toMatchObject({ code: "UNSAFE_PATH" })
        const { policy } = await model.open()
        const to = join(place.root, "saved")
        expect((await outcomeOf(() => policy.save(to, { files: copied }))).code).not.toBe("done")
        expect(await readdir(place.root)).toEqual(["outside", "received"])
        await remove(place)
      }
    }
    const place = await putLink(foreign, "other.jinja", "directory")
    await symlink("tokenizer_config.json", join(place.folder, "chat_template.jinja")) // within the folder
    expect(await checkCopied([join(place.folder, "chat_template.jinja")])).toEqual([
      await realpath(join(place.folder, "tokenizer_config.json")),
    ])
    await remove(place)
  })
})

describe("an interrupted write in a model's folder from elsewhere", () => {
  async function putReady(how: (ready: string) => Promise<unknown> = async () => {}): Promise<string> {
    const folder = join(await mkdtemp(join(tmpdir(), "gigpo-ready-")), "model")
    await cp(managed, folder, { recursive: true })
    const ready = join(folder, ".gigpo-ready")
    await cp(managed, ready, { recursive: true })
    await how(ready)
    return folder
  }

  it("is rejected with the fix by all functions that open it, without changes", async () => {
    const forged = (ready: string) => writeFile(join(ready, ".gigpo-seal"), `${"0".repeat(64)}\n`)
    for (const how of [undefined, forged]) {
      const folder = await putReady(how)
      const before = await tree(folder)
      const [tokenizer, policy, config, , , , write] = calls
      for (const [name, call] of [tokenizer!, policy!, config!, write!]) {
        const { code, text } = await outcomeOf(() => call(folder))
        expect({ name, code }).toEqual({ name, code: "UNFINISHED_WRITE" })
        expect(text).toMatch(/\.gigpo-ready.*gigpo recover .*otherwise remove .*GIGPO_STATE/)
      }
      expect(await tree(folder)).toEqual(before)
      expect(await recover(folder)).toEqual([await realpath(folder)])
      expect((await tree(folder))[join(folder, ".gigpo-ready")]).toBeUndefined()
      await using _ = await Tokenizer.open(folder)
      await rm(join(folder, ".."), { recursive: true })
    }
  })

  it("is recovered through no link", async () => {
    const victims = await mkdtemp(join(tmpdir(), "gigpo-victims-"))
    await writeFile(join(victims, "rag.jinja"), "mine")
    const folder = await putReady()
    await rm(join(folder, templates), { recursive: true })
    await symlink(victims, join(folder, templates))
    await expect(recover(folder)).rejects.toMatchObject({ code: "UNSAFE_PATH" })
    expect(await tree(victims)).toEqual({ [join(victims, "rag.jinja")]: "mine" })
    expect(await readFile(join(folder, "config.json"))).toEqual(await readFile(join(managed, "config.json")))
    for (const one of [victims, join(folder, "..")]) await rm(one, { recursive: true })
  })

  it.skipIf(process.platform === "win32")(
    "with an empty leftover folder is opened, and nothing is removed",
    async () => {
      const folder = join(await mkdtemp(join(tmpdir(), "gigpo-ready-")), "model")
      await cp(managed, folder, { recursive: true })
      await mkdir(join(folder, ".gigpo-ready"))
      await using _ = await Tokenizer.open(folder)
      expect(await readdir(join(folder, ".gigpo-ready"))).toEqual([])
      await rm(join(folder, ".."), { recursive: true })
    },
  )
})
