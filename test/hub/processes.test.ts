import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync } from "node:fs"
import { readdir, stat, utimes, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, expect, it, vi } from "vitest"
import { resolveModel } from "../../src/hub/resolve-model.ts"
import { contentOf, freshHub, neededOf, quick } from "./cache-folder.ts"
import { commit, sha256, someModel } from "./hub-server.ts"

afterEach(() => {
  vi.unstubAllEnvs()
})

const script = fileURLToPath(new URL("download.ts", import.meta.url))

/** Another process that downloads a model. */
function starting(name: string, onLine: (line: Record<string, unknown>) => void = () => {}): ChildProcess {
  const child = spawn(process.execPath, ["--import", "./scripts/typescript.mjs", script, name], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  let rest = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = `${rest}${text}`.split("\n")
    rest = lines.pop()!
    for (const line of lines) onLine(JSON.parse(line))
  })
  return child
}

it("continues after kill -9 where it was", async () => {
  const files = someModel()
  await using server = await freshHub({ "a/b": { files } })
  const blob = sha256(files["model.safetensors"]!)
  await resolveModel("a/b", { weights: false }, quick)
  server.fault = ({ to, path }) => (to === "store" && path.includes(blob) ? "stall" : undefined)
  const partial = join(server.home, "hub", "models--a--b", "blobs", `${blob}.gigpo.incomplete`)
  const child = starting("a/b", ({ done, total }) => {
    if (Number(done) >= Number(total) - 150_000) child.kill("SIGKILL")
  })
  expect((await once(child, "exit"))[1]).toBe("SIGKILL")
  expect((await stat(partial)).size).toBe(150_000)
  const locks = join(server.home, "hub", ".locks", "models--a--b")
  expect(await readdir(locks)).toEqual([`${blob}.lock`]) // of the dead process
  server.fault = undefined
  server.asked.length = 0
  expect(await contentOf(await resolveModel("a/b", {}, quick))).toEqual(neededOf(files))
  expect(server.asked.filter(({ to }) => to === "store").map(({ headers }) => headers.range)).toContain("bytes=150000-")
  expect(await readdir(locks)).toEqual([])
})

it("is done once where several processes begin at the same time", async () => {
  const files = someModel(3_000_000)
  await using server = await freshHub({ "a/b": { files } })
  const paths: unknown[] = []
  const children = Array.from({ length: 3 }, () =>
    starting("a/b", ({ path }) => path !== undefined && paths.push(path)),
  )
  const codes = await Promise.all(children.map(async (child) => (await once(child, "exit"))[0]))
  expect(codes).toEqual([0, 0, 0])
  const folder = join(server.home, "hub", "models--a--b", "snapshots", commit)
  expect(paths).toEqual([folder, folder, folder])
  expect(await contentOf(folder)).toEqual(neededOf(files))
  const large = server.asked.filter(({ to }) => to === "store").map(({ path }) => path)
  expect(large).toHaveLength(new Set(large).size)
})

it("is done twice at once in one process, too", async () => {
  const files = someModel()
  await using server = await freshHub({ "a/b": { files } })
  const folders = await Promise.all([resolveModel("a/b", {}, quick), resolveModel("a/b", { weights: false }, quick)])
  expect(new Set(folders).size).toBe(1)
  expect(await contentOf(folders[0])).toEqual(neededOf(files))
  expect(server.asked.filter(({ to }) => to === "store")).toHaveLength(2)
})

it.each([
  ["an empty one, as huggingface_hub leaves it", ""],
  ["one of a process that is gone", `${JSON.stringify({ pid: 2 ** 22 + 1, host: hostname() })}\n`],
])("takes over a lock: %s", async (_, text) => {
  const files = someModel()
  await using server = await freshHub({ "a/b": { files } })
  const locks = join(server.home, "hub", ".locks", "models--a--b")
  mkdirSync(locks, { recursive: true })
  await writeFile(join(locks, `${sha256(files["model.safetensors"]!)}.lock`), text)
  expect(await contentOf(await resolveModel("a/b", {}, quick))).toEqual(neededOf(files))
})

it("waits for a live lock of another machine, until it is released or aborted", async () => {
  const files = someModel()
  await using server = await freshHub({ "a/b": { files } })
  const locks = join(server.home, "hub", ".locks", "models--a--b")
  mkdirSync(locks, { recursive: true })
  const lock = join(locks, `${sha256(files["model.safetensors"]!)}.lock`)
  await writeFile(lock, `${JSON.stringify({ pid: 1, host: "another-machine" })}\n`)
  await utimes(lock, 0, 0)
  const controller = new AbortController()
  const notes: string[] = []
  const onProgress = (progress: { kind: string; text?: string }) => {
    if (progress.kind === "note") notes.push(progress.text!)
    if (progress.kind === "note") setTimeout(() => controller.abort(new Error("enough")), 300)
  }
  await expect(resolveModel("a/b", { signal: controller.signal, onProgress }, quick)).rejects.toThrow("enough")
  expect(notes).toEqual(["Another process is downloading model.safetensors; waiting for it."])
})
