import { existsSync } from "node:fs"
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { checkWritable } from "../../src/files/check-space.ts"

describe("a folder that is going to be written", () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-space-"))
    await writeFile(join(folder, "file"), "mine")
  })
  afterAll(() => rm(folder, { recursive: true }))

  it("is fine where it is there or can be made, and nothing is left in it", async () => {
    await checkWritable(folder, 1)
    await checkWritable(join(folder, "new/inner"), 1)
    expect(await readdir(folder)).toEqual(["file"])
  })

  it("keeps no probe of a killed process, and may be checked several times at once", async () => {
    await writeFile(join(folder, ".gigpo-probe"), "")
    await Promise.all(Array.from({ length: 20 }, () => checkWritable(folder)))
    expect(await readdir(folder)).toEqual(["file"])
  })

  it("is rejected where the disk has too little room, with how much", async () => {
    await expect(checkWritable(join(folder, "new"), 1e18)).rejects.toMatchObject({
      code: "IO",
      message: expect.stringMatching(/new will need about 931322574\.6 GiB, but the disk has [\d.]+ [GM]iB left: free/),
    })
    expect(await readdir(folder)).toEqual(["file"])
  })

  it.each(["file", "file/inner"])("is rejected where it is %s of a file", async (name) => {
    await expect(checkWritable(join(folder, name))).rejects.toMatchObject({
      code: "IO",
      message: expect.stringMatching(/file is a file, not a folder: choose another name/),
    })
  })

  // Nobody can write there, root neither.
  it.skipIf(!existsSync("/sys/kernel"))("is rejected if the folder is not writable", async () => {
    await expect(checkWritable("/sys/kernel/new/inner")).rejects.toMatchObject({
      code: "IO",
      message: expect.stringMatching(
        /^Could not write into \/sys\/kernel: (permission denied|the file system is read-only)/,
      ),
    })
  })
})
