import { execFileSync } from "node:child_process"
import { cp, mkdir, mkdtemp, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { checkSealed, isSealedName, removeTemporaries, seal, sealedName, temporaryOf } from "../../src/files/seal.ts"
import { stateFolder, stateKey } from "../../src/files/state-folder.ts"

let folder: string
let state: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-seal-"))
  state = join(folder, "state")
  vi.stubEnv("GIGPO_STATE", state)
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(folder, { recursive: true })
})

describe("the journal's key", () => {
  it("is stored in the system's state folder, or in GIGPO_STATE", () => {
    const home = (...names: string[]) => join(homedir(), ...names)
    expect(stateFolder({ GIGPO_STATE: "/volume/state" }, "linux")).toBe("/volume/state")
    expect(stateFolder({}, "linux")).toBe(home(".local", "state", "gigpo"))
    expect(stateFolder({ XDG_STATE_HOME: "/states" }, "linux")).toBe("/states/gigpo")
    expect(stateFolder({ XDG_STATE_HOME: "states" }, "linux")).toBe(home(".local", "state", "gigpo"))
    expect(stateFolder({}, "darwin")).toBe(home("Library", "Application Support", "gigpo"))
    expect(stateFolder({ LOCALAPPDATA: "/local" }, "win32")).toBe(join("/local", "gigpo"))
  })

  it("is made when it is first written with, for its user alone, and once by several at a time", async () => {
    expect(await stateKey("journal", false)).toBeUndefined()
    const keys = await Promise.all(Array.from({ length: 8 }, () => stateKey("journal", true)))
    expect(new Set(keys).size).toBe(1)
    const path = join(state, "journal.key")
    expect((await readFile(path, "utf8")).trim()).toBe(keys[0])
    if (process.platform !== "win32") expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  it("lasts as long as the process where the state folder cannot be written", async () => {
    await writeFile(state, "a file")
    const path = await temporaryOf(join(folder, "a"))
    expect(await isSealedName(path)).toBe(true)
  })
})

const sealModule = new URL("../../src/files/seal.ts", import.meta.url).href

describe("a seal", () => {
  it("of a name holds at its place, whatever link leads there, and for this user", async () => {
    const [inner, link] = [join(folder, "inner"), join(folder, "link")]
    await mkdir(inner)
    await symlink(inner, link)
    const path = await temporaryOf(join(inner, "a"))
    expect(path).toMatch(/a\.tmp-[0-9a-f]{40}$/)
    expect(await isSealedName(path)).toBe(true)
    expect(await isSealedName(path.replace(inner, link))).toBe(true)
    const forged = path.replace(/.{4}$/, (end) => (end === "0000" ? "1111" : "0000"))
    for (const other of [path.replace(inner, folder), path.replace("a.tmp", "b.tmp"), forged, join(inner, "a")])
      expect(await isSealedName(other), other).toBe(false)
    vi.stubEnv("GIGPO_STATE", join(folder, "another"))
    expect(await isSealedName(path)).toBe(false)
  })

  it("of a temporary name identifies the process: leftovers of a dead one are removed by the next", async () => {
    const path = join(folder, "a")
    // A process that has ended, and another user's file of the same name.
    const program = `const { temporaryOf } = await import(${JSON.stringify(sealModule)}); console.log(await temporaryOf(${JSON.stringify(path)}))`
    const words = ["--import", "./scripts/typescript.mjs", "--input-type=module", "-e", program]
    const dead = execFileSync(process.execPath, words, { encoding: "utf8" }).trim()
    const own = await temporaryOf(path)
    const forged = dead.replace(/.{4}$/, (end) => (end === "0000" ? "1111" : "0000"))
    for (const left of [dead, own, forged]) await writeFile(left, "half")
    await temporaryOf(join(folder, "b"))
    expect(await stat(dead).then(() => "there")).toBe("there")
    await temporaryOf(path)
    await expect(stat(dead)).rejects.toMatchObject({ code: "ENOENT" })
    for (const left of [own, forged]) expect(await readFile(left, "utf8")).toBe("half")
  })

  it("names every temporary file differently", async () => {
    const names = await Promise.all(Array.from({ length: 100 }, () => sealedName(join(folder, "a-"))))
    expect(new Set(names).size).toBe(100)
  })

  it("of a folder holds for its owner and its text", async () => {
    const [owner, waiting] = [join(folder, "model"), join(folder, "model", "waiting")]
    await mkdir(waiting, { recursive: true })
    await seal(waiting, owner, "text")
    await checkSealed(waiting, owner, "text")
    const refusal = { code: "UNFINISHED_WRITE", message: expect.stringMatching(/gigpo recover/) }
    await expect(checkSealed(waiting, owner, "other")).rejects.toMatchObject(refusal)
    await cp(owner, join(folder, "copy"), { recursive: true })
    await expect(checkSealed(join(folder, "copy", "waiting"), join(folder, "copy"), "text")).rejects.toMatchObject(
      refusal,
    )
    await rename(owner, join(folder, "moved"))
    await expect(checkSealed(join(folder, "moved", "waiting"), join(folder, "moved"), "text")).rejects.toMatchObject(
      refusal,
    )
  })

  it("prevents the removal of files of others", async () => {
    const [own, other] = [await temporaryOf(join(folder, "a")), join(folder, "a.tmp-0123456789abcdef01234567")]
    for (const path of [own, other]) await mkdir(path)
    await removeTemporaries(
      folder,
      [own, other].map((path) => path.slice(folder.length + 1)),
    )
    expect(await stat(other).then(() => "there")).toBe("there")
    await expect(stat(own)).rejects.toMatchObject({ code: "ENOENT" })
  })
})
