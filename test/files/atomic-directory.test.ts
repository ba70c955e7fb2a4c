import { spawnSync } from "node:child_process"
import type * as FileSystem from "node:fs/promises"
import { lstat, mkdir, mkdtemp, open, readdir, readFile, rm, symlink, utimes, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { checkTarget, writeDirectory } from "../../src/files/atomic-directory.ts"
import { sealedName } from "../../src/files/seal.ts"
import { GigpoError } from "../../src/util/errors.ts"

/** Every call to the file system, the `failAt`-th of which fails; also counts those that flush. */
const disk = vi.hoisted(() => {
  /** `windows`: mkdir() answers as there, where it names the first folder that it made in another form than it was given. */
  const state = {
    armed: false,
    calls: [] as string[],
    failAt: Number.POSITIVE_INFINITY,
    code: "ENOSPC",
    windows: false,
  }
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
    (name: "mkdir" | "rename" | "rm" | "readdir" | "lstat" | "rmdir") =>
    (path: string, ...rest: never[]): unknown =>
      disk.call(name, path, () => (real[name] as (...all: unknown[]) => unknown)(path, ...rest))
  return {
    ...real,
    mkdir: async (path: string, ...rest: never[]) => {
      const made = await wrap("mkdir")(path, ...rest)
      return typeof made === "string" && disk.state.windows ? `\\\\?\\${made}` : made
    },
    rename: wrap("rename"),
    rm: wrap("rm"),
    readdir: wrap("readdir"),
    lstat: wrap("lstat"),
    rmdir: wrap("rmdir"),
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
  Object.assign(disk.state, { armed: false, windows: false })
  await rm(folder, { recursive: true })
})

async function fill(temporary: string): Promise<void> {
  await mkdir(join(temporary, "sub"))
  await writeFile(join(temporary, "a"), "new")
  await writeFile(join(temporary, "sub", "b"), "new")
}

/** An older result, with a file that has no successor, among foreign files. */
async function putOld(): Promise<void> {
  await writeDirectory(target, async (temporary) => {
    await mkdir(join(temporary, "before"))
    await writeFile(join(temporary, "a"), "old")
    await writeFile(join(temporary, "before", "c"), "old")
  })
  await mkdir(join(target, ".git"))
  await writeFile(join(target, ".git", "HEAD"), "mine")
  await writeFile(join(target, "notes"), "mine")
}

/** What is in the folder beside what others put there, which must be as it was. */
async function own(): Promise<string[]> {
  expect(await readFile(join(target, ".git", "HEAD"), "utf8")).toBe("mine")
  expect(await readFile(join(target, "notes"), "utf8")).toBe("mine")
  return (await readdir(target)).filter((name) => ![".git", "notes"].includes(name))
}
const [oldFiles, newFiles] = [
  ["a", "before", "gigpo.json"],
  ["a", "gigpo.json", "sub"],
]

/** Every file below a folder, with what it holds. */
async function contents(of: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const entry of await readdir(of, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    found[path] = entry.isFile() ? await readFile(path, "utf8") : "folder"
  }
  return found
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

it("ends in folders that it makes itself, also if mkdir names them in another form", async () => {
  disk.state.windows = true
  const nested = join(folder, "runs/today/model")
  await writeDirectory(nested, fill)
  expect((await readdir(nested)).sort()).toEqual(expect.arrayContaining(["a", "sub"]))
})

describe("writeDirectory", () => {
  it("creates the folder with its contents, and nothing else", async () => {
    await writeDirectory(target, fill)
    expect(await readFile(join(target, "sub", "b"), "utf8")).toBe("new")
    expect(await readdir(folder)).toEqual(["model"])
  })

  it("makes the folders above, and accepts an empty folder in its place", async () => {
    const deep = join(folder, "x", "y", "model")
    await mkdir(deep, { recursive: true })
    await writeDirectory(deep, fill)
    await writeDirectory(join(folder, "p", "q", "model"), fill)
    expect(await readdir(deep)).toEqual(["a", "gigpo.json", "sub"])
    expect(await readdir(join(folder, "p", "q"))).toEqual(["model"])
  })

  it("shows nothing at the target before fill is done", async () => {
    await writeDirectory(target, async (temporary) => {
      await fill(temporary)
      expect((await readdir(folder)).every((name) => name.startsWith("model.tmp-"))).toBe(true)
    })
  })

  it("rejects a target that is there, before fill runs", async () => {
    await putOld()
    const filled = vi.fn(fill)
    const refusal = { code: "FILE_EXISTS", message: expect.stringMatching(/already exists.*overwritten/) }
    await expect(writeDirectory(target, filled)).rejects.toMatchObject(refusal)
    expect(filled).not.toHaveBeenCalled()
    await expect(writeDirectory(join(target, "a"), filled)).rejects.toMatchObject(refusal)
    expect(await readFile(join(target, "a"), "utf8")).toBe("old")
  })

  it("rejects a target that appears while it is filled", async () => {
    const racing = async (temporary: string) => {
      await fill(temporary)
      await putOld()
    }
    await expect(writeDirectory(target, racing)).rejects.toMatchObject({
      code: "FILE_EXISTS",
      message: /already exists/,
    })
    expect(await readFile(join(target, "a"), "utf8")).toBe("old")
    expect(await readdir(folder)).toEqual(["model"])
  })

  it("is made by one of several that write at once, and by the others rejected", async () => {
    for (let round = 0; round < 20; round++) {
      await rm(target, { recursive: true, force: true })
      const writers = Array.from({ length: 6 }, (_, i) =>
        writeDirectory(target, fill, i % 2 === 0 ? {} : { manifest: "none" }).then(
          () => "made",
          (error) => error.code,
        ),
      )
      const codes = await Promise.all(writers)
      expect(codes.toSorted()).toEqual([...Array(5).fill("FILE_EXISTS"), "made"])
    }
  })

  it("replaces all files that it wrote if permitted, and no others", async () => {
    await putOld()
    await writeFile(join(folder, "other"), "")
    await writeDirectory(target, fill, { overwrite: true })
    expect(await readFile(join(target, "a"), "utf8")).toBe("new")
    expect(await own()).toEqual(newFiles)
    expect(await readdir(folder)).toEqual(["model", "other"])
    await writeDirectory(target, fill, { overwrite: true })
    expect(await own()).toEqual(newFiles)
  })

  it("replaces files that it wrote through a link, which is kept", async () => {
    await putOld()
    const link = join(folder, "link")
    await symlink(target, link)
    await writeDirectory(link, fill, { overwrite: true })
    expect(await own()).toEqual(newFiles)
    expect((await lstat(link)).isSymbolicLink()).toBe(true)
    await rm(link)
    await symlink(join(folder, "nowhere"), link)
    await expect(writeDirectory(link, fill)).rejects.toMatchObject({ code: "IO", message: /is a broken link/ })
  })

  it.each([
    [
      "a file that it did not write",
      async () => await writeFile(join(target, "sub"), "mine"),
      /sub\/b was not written/,
    ],
    [
      "a folder in place of a file",
      async () => await mkdir(join(target, "sub", "b"), { recursive: true }),
      /sub\/b was/,
    ],
    [
      "a file of its own that was changed",
      async () => await writeFile(join(target, "a"), "mine"),
      /a was changed since/,
    ],
    ["one of the same size", async () => await writeFile(join(target, "a"), "odl"), /a was changed since/],
    ["no manifest", async () => await rm(join(target, "gigpo.json")), /a was not written by gigpo/],
    ["a broken manifest", async () => await writeFile(join(target, "gigpo.json"), "{}"), /a was not written by gigpo/],
    [
      "a manifest that reaches elsewhere",
      async () => {
        const files = [{ name: "../other", bytes: 0, sha256: "" }]
        await writeFile(join(target, "gigpo.json"), JSON.stringify({ gigpo: "1", files }))
      },
      /a was not written by gigpo/,
    ],
  ])("rejects %s in its way, and changes nothing", async (_, put, message) => {
    await putOld()
    await put()
    const before = await contents(folder)
    await expect(writeDirectory(target, fill, { overwrite: true })).rejects.toMatchObject({
      code: "FILE_EXISTS",
      message,
    })
    expect(await contents(folder)).toEqual(before)
    const names = ["a", "sub/b"] // known before anything is computed
    await expect(checkTarget(target, { overwrite: true, names })).rejects.toMatchObject({
      code: "FILE_EXISTS",
      message,
    })
  })

  it("leaves a file that has no successor where it was changed", async () => {
    await putOld()
    await writeFile(join(target, "before", "c"), "mine")
    await writeDirectory(target, fill, { overwrite: true })
    expect(await readFile(join(target, "before", "c"), "utf8")).toBe("mine")
  })

  it("removes leftovers of a dead process, and not of a living one", async () => {
    await putOld()
    const dead = spawnSync(process.execPath, ["--version"]).pid
    const made = async (pid: number | undefined) => basename(await sealedName(join(target, `.gigpo-new-${pid}-`)))
    const [left, young, alive] = [await made(dead), await made(dead), await made(process.ppid)]
    const foreign = `.gigpo-new-${dead}-0123456789abcdef01234567` // as a folder from elsewhere may have one
    for (const name of [left, young, alive, foreign]) await mkdir(join(target, name))
    const yesterday = Date.now() / 1000 - 25 * 3600
    for (const name of [left, alive, foreign]) await utimes(join(target, name), yesterday, yesterday)
    await writeDirectory(target, fill, { overwrite: true })
    expect((await own()).sort()).toEqual([young, alive, foreign, ...newFiles].sort())
  })

  it("passes on an error of fill and removes what it wrote", async () => {
    await putOld()
    const failure = new GigpoError("NON_FINITE", "A weight is NaN.")
    const failing = async (temporary: string) => {
      await fill(temporary)
      throw failure
    }
    await expect(writeDirectory(target, failing, { overwrite: true })).rejects.toBe(failure)
    expect(await own()).toEqual(oldFiles)
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
        `sync ${temporary}/gigpo.json`,
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
      await checkTarget(target, { overwrite: true }) // as the next process does
      const kept = (await readFile(join(target, "a"), "utf8")) as "old" | "new"
      outcomes[kept]++
      expect(await own()).toEqual(kept === "old" ? oldFiles : newFiles)
    }
    expect(Math.min(outcomes.old, outcomes.new)).toBeGreaterThan(5)
  })

  it("leaves nothing if any step fails and nothing existed", async () => {
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
