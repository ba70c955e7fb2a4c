import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { RunFolders, shortNames } from "../../../src/view/serve/run-folders.ts"
import { madeFolder } from "../run-folder.ts"

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-folders-"))
})
afterEach(async () => await rm(folder, { recursive: true }))
const made = (name: string) => madeFolder(join(folder, name), {}, [])

describe("folders of runs", () => {
  it("have short names that tell them apart, and ids that stay", async () => {
    await made("runs/a")
    await made("old/runs/a")
    const folders = await RunFolders.open([join(folder, "runs"), join(folder, "old"), join(folder, "runs", "a")])
    const [first, second, ...more] = await folders.list()
    expect([first?.name, second?.name, more]).toEqual([`${folder.split("/").at(-1)}/runs/a`, "old/runs/a", []])
    expect(first!.id).toMatch(/^\w+$/)
    await made("runs/later")
    const names = (await folders.list()).map(({ name }) => name)
    expect(names).toContain("later")
    expect((await folders.find(first!.id))?.directory).toBe(join(folder, "runs", "a"))
    await rename(join(folder, "runs", "a"), join(folder, "runs", "b"))
    expect(await folders.find(first!.id)).toBeUndefined()
  })

  it("find one that came after they were listed", async () => {
    await made("a")
    const folders = await RunFolders.open([folder])
    await made("b")
    const id = (await (await RunFolders.open([folder])).list()).find(({ name }) => name === "b")!.id
    expect((await folders.find(id))?.name).toBe("b")
  })

  it("hold what lies in them and not what links lead to", async () => {
    await made("within/own")
    await made("elsewhere/secret")
    await symlink(join(folder, "elsewhere"), join(folder, "within", "linked"))
    const linked = await made("within/files")
    await rm(join(linked, "metrics.jsonl"))
    await symlink(join(folder, "elsewhere", "secret", "metrics.jsonl"), join(linked, "metrics.jsonl"))
    const folders = await RunFolders.open([join(folder, "within")])
    expect((await folders.list()).map(({ name }) => name)).toEqual(["own"])
    const { id } = (await folders.list())[0]!
    await rm(join(folder, "within", "own", "config.json"))
    await symlink(join(folder, "elsewhere", "secret", "config.json"), join(folder, "within", "own", "config.json"))
    expect(await folders.find(id)).toBeUndefined()
  })

  it("may be named by links, and by nothing where no run is", async () => {
    await made("real")
    await symlink(join(folder, "real"), join(folder, "name"))
    expect((await (await RunFolders.open([join(folder, "name")])).list()).map(({ name }) => name)).toEqual(["real"])
    await mkdir(join(folder, "empty"))
    await writeFile(join(folder, "file"), "")
    for (const name of ["empty", "file"])
      await expect(RunFolders.open([join(folder, name)])).rejects.toMatchObject({
        code: "BAD_ARGUMENT",
        message: /There is no run in .*Give the folder/,
      })
    await expect(RunFolders.open([join(folder, "none")])).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: /does not exist or cannot be read/,
    })
    for (const wrong of [[], [""], "runs", [7]])
      await expect(RunFolders.open(wrong as string[])).rejects.toMatchObject({
        code: "BAD_ARGUMENT",
        message: /No run is given/,
      })
  })
})

it("names are as short as they can be", () => {
  expect(shortNames(["/a/x", "/b/x", "/b/y", "/", "/c/b/x"])).toEqual(["a/x", "b/x", "y", "/", "c/b/x"])
  expect(shortNames(["/home/sokoban/run", "/run"])).toEqual(["sokoban/run", "run"])
})
