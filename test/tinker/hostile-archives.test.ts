import { readdirSync, readlinkSync } from "node:fs"
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { gzipSync } from "node:zlib"
import { afterAll, beforeEach, describe, expect, it } from "vitest"
import { downloadAdapter } from "../../src/engine/remote/adapter-archive.ts"
import type { Connection } from "../../src/engine/remote/connection.ts"
import { block, padded } from "./tar-blocks.mjs"

const [config, weights] = ["adapter_config.json", "adapter_model.safetensors"] as const
const end = Buffer.alloc(1024)
/** File of a descriptor; "" for one that was closed meanwhile. */
const target = (descriptor: string) => {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return ""
  }
}
const file = (name: string, text: string) => [block({ name, size: text.length }), padded(Buffer.from(text))]
const whole = [...file(config, "{}"), ...file(weights, "weights"), end]

describe("an archive of an engine", () => {
  const folders: string[] = []
  let into: string
  beforeEach(async () => {
    into = await mkdtemp(join(tmpdir(), "gigpo-archive-"))
    folders.push(into)
  })
  afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))))

  /** Downloads an archive in pieces, as a network delivers it. */
  async function unpack(parts: readonly Buffer[], { most = 2 ** 26, cancelled = () => {} } = {}): Promise<void> {
    const bytes = Buffer.concat(parts)
    let at = 0
    const body = new ReadableStream({
      pull(controller) {
        if (at >= bytes.length) return controller.close()
        controller.enqueue(new Uint8Array(bytes.subarray(at, at + 16_384)))
        at += 16_384
      },
      cancel: cancelled,
    })
    const connection = { download: async () => new Response(body) } as unknown as Connection
    await downloadAdapter(connection, "tinker://model/sampler_weights/last", into, { most })
  }
  const refused = (message: RegExp) => ({ code: "ENGINE_REJECTED", message: expect.stringMatching(message) })

  it.each([
    ["letters", "lots"],
    ["a number below zero", Buffer.from([0xff, ...new Array(10).fill(0xff), 0])],
    ["more than a number can count", Buffer.from([0x80, ...new Array(11).fill(0xff)])],
  ])("whose file has %s as its size is rejected, and not waited for", async (_, size) => {
    await expect(unpack([...file(config, "{}"), block({ name: weights, size }), end])).rejects.toMatchObject(
      refused(/the size of adapter_model.safetensors is invalid/),
    )
  })

  it("with a size in its attributes that is no number is rejected", async () => {
    const size = Buffer.from("13 size=many\n")
    const attributes = [block({ name: "attributes", type: "x", size: size.length }), padded(size)]
    await expect(unpack([...attributes, ...whole])).rejects.toMatchObject(refused(/the size of .* is invalid/))
  })

  it.each([
    ["1", "link"],
    ["2", "symbolic link"],
    ["3", "device"],
    ["5", "folder"],
    ["6", "pipe"],
  ])("that has an entry of type %s, a %s, in place of a file is rejected, and writes none", async (type) => {
    const entry = block({ name: weights, type, link: "/etc/passwd" })
    await expect(unpack([...file(config, "{}"), entry, end])).rejects.toMatchObject(refused(/it contains .*, not/))
    expect(await readdir(into)).toEqual([config])
  })

  it("with two files of the same name is rejected: readers differ in which one counts", async () => {
    await expect(unpack([...file(`other/${config}`, "{ }"), ...whole])).rejects.toMatchObject(
      refused(/contains adapter_config.json twice/),
    )
  })

  it("writes its files into the folder, whatever folders they name", async () => {
    await unpack([
      ...file(`../../${config}`, "{}"),
      ...file(`/etc/${weights}`, "weights"),
      ...file("README.md", "?"),
      end,
    ])
    expect((await readdir(into)).sort()).toEqual([config, weights])
    expect(await readFile(join(into, weights), "utf8")).toBe("weights")
  })

  it.each(["x", "g", "L", "K"])("with long attributes (%s) is rejected before they are in memory", async (type) => {
    const size = 2 ** 25
    const bomb = gzipSync(Buffer.concat([block({ name: "attributes", type, size }), Buffer.alloc(size, 32), ...whole]))
    await expect(unpack([bomb])).rejects.toMatchObject(refused(/more than 4194304 bytes besides its files/))
  })

  it("of nothing but ignored files, or that is larger unpacked than an adapter can be, is left before its end", async () => {
    const many = Array.from({ length: 1001 }, (_, at) => block({ name: `file-${at}` }))
    await expect(unpack([...many, ...whole])).rejects.toMatchObject(refused(/more than 1000 files/))
    const large = gzipSync(Buffer.concat(file(weights, "0".repeat(2 ** 23))))
    await expect(unpack([large], { most: 2 ** 22 })).rejects.toMatchObject(refused(/more than 4194304 bytes/))
    let cancelled = 0
    await expect(unpack([...many, Buffer.alloc(2 ** 20)], { cancelled: () => cancelled++ })).rejects.toMatchObject(
      refused(/files/),
    )
    await expect.poll(() => cancelled).toBe(1)
  })

  it.skipIf(process.platform !== "linux")("leaves no file open or unmade when it is rejected", async () => {
    const open = () => readdirSync("/proc/self/fd").map(target)
    const broken = Buffer.concat([...file(config, "{}"), ...file(weights, "w".repeat(5000)), Buffer.alloc(512, 7)])
    for (let length = 512; length < broken.length; length += 500) {
      await expect(unpack([broken.subarray(0, length)])).rejects.toMatchObject({ code: "ENGINE_REJECTED" })
      const made = readdirSync(into)
      expect(open().filter((path) => path.startsWith(into))).toEqual([])
      await wait(5)
      expect(readdirSync(into)).toEqual(made)
    }
  })
})
