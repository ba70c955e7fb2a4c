import type * as FileSystem from "node:fs/promises"
import { mkdir, mkdtemp, open, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { GigpoError } from "../../src/errors.ts"
import { writeDirectory } from "../../src/files/atomic-directory.ts"

/** Every call to the file system, the `failAt`-th of which fails; also counts those that flush. */
const disk = vi.hoisted(() => {
  const state = { armed: false, calls: [] as string[], failAt: Number.POSITIVE_INFINITY, code: "ENOSPC" }
  const call = <T>(name: string, path: unknown, operation: () => T): T => {
    if (!state.armed) return operation()
    state.calls.push(`${name} ${path}`)
    if (state.calls.length !== state.failAt) return operation()
    const error = Object.assign(new Error(`${state.code}: made to fail`), { code: state.code, syscall: name })
    return Promise.reject(error) as T
  }
  return { state, call }
})

vi.mock("node:fs/promises", async (importOriginal) => {
  const real = await importOriginal<typeof FileSystem>()
  const wrap =
    (name: "mkdir" | "rename" | "rm" | "readdir" | "lstat") =>
    (path: string, ...rest: never[]): unknown =>
      disk.call(name, path, () => (real[name] as (...all: unknown[]) => unknown)(path, ...rest))
  return {
    ...real,
    mkdir: wrap("mkdir"),
    rename: wrap("rename"),
    rm: wrap("rm"),
    readdir: wrap("readdir"),
    lstat: wrap("lstat"),
    open: (path: string, ...rest: never[]) =>
      disk.call("open", path, async () => {
        const handle = await real.open(path, ...rest)
        const sync = handle.sync.bind(handle)
        handle.sync = () => disk.call("sync", path, sync)
        return handle
      }),
  }
})

let folder: string
let target: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-directory-"))
  target = join(folder, "model")
})
afterEach(async () => {
  disk.state.armed = false
  await rm(folder, { recursive: true })
})

async function fill(temporary: string): Promise<void> {
  await mkdir(join(temporary, "sub"))
  await writeFile(join(temporary, "a"), "new")
  await writeFile(join(temporary, "sub", "b"), "new")
}

async function putOld(): Promise<void> {
  await mkdir(target)
  await writeFile(join(target, "a"), "old")
}

/** Runs `action` with every call to the file system counted and, if asked for, one of them failing. */
async function withDisk(
  action: () => Promise<void>,
  failAt = Number.POSITIVE_INFINITY,
  code = "ENOSPC",
): Promise<string[]> {
  Object.assign(disk.state, { armed: true, calls: [], failAt, code })
  try {
    await action()
  } finally {
    disk.state.armed = false
  }
  return disk.state.calls
}

describe("writeDirectory", () => {
  it("makes the folder with what was filled in, and nothing else beside it", async () => {
    await writeDirectory(target, fill)
    expect(await readFile(join(target, "sub", "b"), "utf8")).toBe("new")
    expect(await readdir(folder)).toEqual(["model"])
  })

  it("makes the folders above, and accepts an empty folder in its place", async () => {
    const deep = join(folder, "x", "y", "model")
    await mkdir(deep, { recursive: true })
    await writeDirectory(deep, fill)
    await writeDirectory(join(folder, "p", "q", "model"), fill)
    expect(await readdir(deep)).toEqual(["a", "sub"])
    expect(await readdir(join(folder, "p", "q"))).toEqual(["model"])
  })

  it("shows nothing at the target before fill is done", async () => {
    await writeDirectory(target, async (temporary) => {
      await fill(temporary)
      expect((await readdir(folder)).every((name) => name.startsWith("model.tmp-"))).toBe(true)
    })
  })

  it("refuses a target that is there, before fill runs", async () => {
    await putOld()
    const filled = vi.fn(fill)
    const refusal = { code: "IO", message: expect.stringMatching(/already there.*overwritten/) }
    await expect(writeDirectory(target, filled)).rejects.toMatchObject(refusal)
    expect(filled).not.toHaveBeenCalled()
    await expect(writeDirectory(join(target, "a"), filled)).rejects.toMatchObject(refusal)
    expect(await readFile(join(target, "a"), "utf8")).toBe("old")
  })

  it("refuses a target that appears while it is filled", async () => {
    const racing = async (temporary: string) => {
      await fill(temporary)
      await putOld()
    }
    await expect(writeDirectory(target, racing)).rejects.toMatchObject({ code: "IO", message: /already there/ })
    expect(await readFile(join(target, "a"), "utf8")).toBe("old")
    expect(await readdir(folder)).toEqual(["model"])
  })

  it("replaces a folder when it may, and only that folder", async () => {
    await putOld()
    await writeFile(join(folder, "other"), "")
    await writeDirectory(target, fill, { overwrite: true })
    expect(await readFile(join(target, "a"), "utf8")).toBe("new")
    expect(await readdir(folder)).toEqual(["model", "other"])
  })

  it("replaces a link when it may, not the folder that it leads to", async () => {
    const elsewhere = join(folder, "elsewhere")
    await mkdir(elsewhere)
    await writeFile(join(elsewhere, "a"), "old")
    await symlink(elsewhere, target)
    await writeDirectory(target, fill, { overwrite: true })
    expect(await readFile(join(target, "a"), "utf8")).toBe("new")
    expect(await readFile(join(elsewhere, "a"), "utf8")).toBe("old")
  })

  it("passes on what fill throws and removes what it wrote", async () => {
    await putOld()
    const failure = new GigpoError("NON_FINITE", "A weight is NaN.")
    const failing = async (temporary: string) => {
      await fill(temporary)
      throw failure
    }
    await expect(writeDirectory(target, failing, { overwrite: true })).rejects.toBe(failure)
    expect(await readFile(join(target, "a"), "utf8")).toBe("old")
    expect(await readdir(folder)).toEqual(["model"])
  })

  it.skipIf(process.platform !== "linux")("says in words that the disk is full", async () => {
    await putOld()
    const failing = async () => {
      const full = await open("/dev/full", "w") // every write to it fails with ENOSPC
      try {
        await full.write("x")
      } finally {
        await full.close()
      }
    }
    const error = await writeDirectory(target, failing, { overwrite: true }).catch((e: unknown) => e)
    expect(error).toMatchObject({
      code: "IO",
      message: `Could not write ${target}: the disk is full; free some space and try again.`,
    })
    expect((error as Error).cause).toMatchObject({ code: "ENOSPC" })
    expect(await readdir(folder)).toEqual(["model"])
  })

  it.skipIf(process.platform === "win32")(
    "flushes files, then folders, then renames once, then flushes the parent",
    async () => {
      const calls = await withDisk(() => writeDirectory(target, fill))
      const steps = calls
        .filter((call) => /^(sync|rename) /.test(call))
        .map((call) => call.replace(/\.tmp-\w+/, ".tmp"))
      const temporary = `${target}.tmp`
      expect(steps.at(-1)).toBe(`sync ${folder}`)
      expect(steps.at(-2)).toBe(`rename ${temporary}`)
      expect(steps.at(-3)).toBe(`sync ${temporary}`)
      expect(steps.slice(0, -3).sort()).toEqual([
        `sync ${temporary}/a`,
        `sync ${temporary}/sub`,
        `sync ${temporary}/sub/b`,
      ])
      expect(steps.indexOf(`sync ${temporary}/sub/b`)).toBeLessThan(steps.indexOf(`sync ${temporary}/sub`))
    },
  )

  it.each(["ENOSPC", "EIO"])("leaves a whole folder at the target when any one step fails with %s", async (code) => {
    await putOld()
    const total = (await withDisk(() => writeDirectory(target, fill, { overwrite: true }))).length
    expect(total).toBeGreaterThan(15)
    const outcomes = { old: 0, new: 0 }
    for (let failAt = 1; failAt <= total; failAt++) {
      await rm(folder, { recursive: true })
      await mkdir(folder)
      await putOld()
      await expect(
        withDisk(() => writeDirectory(target, fill, { overwrite: true }), failAt, code),
      ).rejects.toMatchObject({
        code: "IO",
        message: expect.stringMatching(code === "ENOSPC" ? /the disk is full/ : /the disk reported a fault/),
      })
      const kept = (await readFile(join(target, "a"), "utf8")) as "old" | "new"
      outcomes[kept]++
      if (kept === "old") expect(await readdir(target)).toEqual(["a"])
      else expect(await readdir(join(target, "sub"))).toEqual(["b"])
      expect((await readdir(folder)).filter((name) => name.startsWith("model.tmp-"))).toEqual([])
    }
    // After the rename only flushing the parent (open, sync) and removing the old folder can fail.
    expect(outcomes).toEqual({ old: total - 3, new: 3 })
  })

  it("leaves nothing behind when any one step fails and nothing was there", async () => {
    const total = (await withDisk(() => writeDirectory(target, fill))).length
    for (let failAt = 1; failAt <= total; failAt++) {
      await rm(folder, { recursive: true })
      await mkdir(folder)
      await expect(withDisk(() => writeDirectory(target, fill), failAt)).rejects.toMatchObject({ code: "IO" })
      const left = await readdir(folder)
      if (failAt <= total - 2) expect(left).toEqual([])
      else expect(left).toEqual(["model"])
    }
  })
})
