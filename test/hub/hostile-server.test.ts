import { readdir } from "node:fs/promises"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterEach, describe, expect, it, vi } from "vitest"
import { resolveModel } from "../../src/hub/resolve-model.ts"
import { freshHome, freshHub, quick } from "./cache-folder.ts"
import { commit, someModel } from "./hub-server.ts"

afterEach(() => {
  vi.unstubAllEnvs()
})

const hub = (name: string) => resolveModel(name, {}, quick)
const digest = "a".repeat(64)

/** A listing with one more file, or none of its own. */
async function listing(file: object): Promise<unknown> {
  const listing = (usual: { siblings: object[] }) => ({ ...usual, siblings: [...usual.siblings, file] })
  await using server = await freshHub({ "a/b": { files: someModel(), listing } })
  const error = await hub("a/b").catch((error) => error)
  // Nothing was written, here or anywhere else.
  expect(await readdir(server.home)).toEqual([])
  return error
}

describe("a listing is rejected", () => {
  it.each([
    ...[
      "../config.json",
      "../../../.bashrc.json",
      "/etc/passwd.json",
      "a/../../x.json",
      "./x.json",
      "a//x.json",
      "x/..",
      "..",
      "",
    ],
    ...[
      "a\\b.json",
      "..\\..\\x.json",
      "C:\\x.json",
      "c:x.json",
      "x.json\0.txt",
      "x\n.json",
      "\u001b[2J.json",
      "con.json",
      "NUL",
      "aux.safetensors",
    ],
    ...[
      "lpt1.jinja",
      "x.json.",
      "x.json ",
      "\ud800.json",
      "x".repeat(300),
      "CONFIG.json",
      "config.json",
      "a/".repeat(600),
    ],
  ])("for a file of the name %j", async (rfilename) => {
    const error = await listing({ rfilename, size: 3, blobId: "b".repeat(40) })
    expect(error).toMatchObject({
      code: "HUB_REJECTED",
      message: expect.stringMatching(/sent an invalid response: (a file with the invalid|two files with the) name/),
    })
  })

  it.each<unknown>([2 ** 63, 2 ** 53, 2 ** 51, -1, 1.5, "12", {}, [], { toString: 1 }])(
    "for a size of %j",
    async (size) => {
      const error = await listing({ rfilename: "x.safetensors", lfs: { sha256: digest, size } })
      expect(error).toMatchObject({
        code: "HUB_REJECTED",
        message: expect.stringMatching(/an invalid size of .* for x\.safetensors/),
      })
    },
  )

  it.each(["", "../x", `${digest}/..`, digest.toUpperCase(), digest.slice(1), 5, {}])(
    "for a digest of %j",
    async (sha256) => {
      const error = await listing({ rfilename: "x.safetensors", lfs: { sha256, size: 10 } })
      expect(error).toMatchObject({
        code: "HUB_REJECTED",
        message: expect.stringContaining("no valid digest for x.safetensors"),
      })
    },
  )

  it.each([
    ...["", "[", "null", "[]", "{}", "7", '{"sha":"main","siblings":[]}', '{"sha":"../../x","siblings":[]}'],
    ...[
      `{"sha":"${commit}"}`,
      `{"sha":"${commit}","siblings":{}}`,
      `{"sha":"${commit}","siblings":[null]}`,
      "[".repeat(100_000),
    ],
  ])("for %j", async (text) => {
    await using server = await freshHub({ "a/b": { files: {}, listing: () => text } })
    await expect(hub("a/b")).rejects.toMatchObject({ code: "HUB_REJECTED" })
    expect(await readdir(server.home)).toEqual([])
  })
})

/** Answers every request so. */
async function answering(answer: (response: ServerResponse) => void): Promise<Disposable> {
  const server = createServer((_, response) => answer(response))
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  freshHome(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const dispose = () => {
    server.closeAllConnections()
    server.close()
  }
  return { [Symbol.dispose]: dispose }
}

/** Writes without an end, as fast as it is read. */
function endless(response: ServerResponse): void {
  const piece = Buffer.alloc(2 ** 16, '{"rfilename":"x"},')
  const more = () => {
    while (!response.destroyed && response.write(piece));
    if (!response.destroyed) response.once("drain", more)
  }
  more()
}

describe("memory stays bounded", () => {
  it("for a listing that never ends", async () => {
    using _ = await answering(endless)
    const before = process.memoryUsage().rss
    await expect(hub("a/b")).rejects.toMatchObject({
      message: expect.stringContaining("a listing of more than 32 MiB"),
    })
    expect(process.memoryUsage().rss - before).toBeLessThan(400 * 2 ** 20)
  })

  it("for a compressed one, which is read as it is", async () => {
    using _ = await answering((response) => response.writeHead(200, { "content-encoding": "gzip" }).end("no gzip"))
    await expect(hub("a/b")).rejects.toMatchObject({ code: expect.stringMatching(/^HUB_/) })
  })

  it("for a file that never ends", async () => {
    let listed = false
    using _ = await answering((response) => {
      if (listed) return endless(response)
      listed = true
      const siblings = [{ rfilename: "x.safetensors", lfs: { sha256: digest, size: 100_000 } }]
      response.end(JSON.stringify({ sha: commit, siblings }))
    })
    await expect(hub("a/b")).rejects.toMatchObject({
      message: expect.stringContaining("is longer than the 100000 bytes"),
    })
    const blobs = join(process.env.HF_HOME!, "hub", "models--a--b", "blobs")
    expect(await readdir(blobs)).toEqual([`${digest}.gigpo.incomplete`])
  })
})

it("rejects another part of a file than requested, and more bytes than declared", async () => {
  let listed = false
  let range = "bytes 5-9/10"
  using _ = await answering((response) => {
    if (listed) return void response.writeHead(206, { "content-range": range }).end("12345")
    listed = true
    response.end(
      JSON.stringify({ sha: commit, siblings: [{ rfilename: "x.safetensors", lfs: { sha256: digest, size: 10 } }] }),
    )
  })
  await expect(hub("a/b")).rejects.toMatchObject({
    message: expect.stringContaining("the part of x.safetensors is not the requested one"),
  })
  ;[listed, range] = [false, "bytes 0-9/20"]
  await expect(hub("a/b")).rejects.toMatchObject({
    message: expect.stringContaining("the part of x.safetensors is not the requested one"),
  })
})

it("checks the free disk space before anything is downloaded", async () => {
  const siblings = [{ rfilename: "x.safetensors", lfs: { sha256: digest, size: 2 ** 50 } }]
  await using server = await freshHub({ "a/b": { files: {}, listing: () => ({ sha: commit, siblings }) } })
  await expect(hub("a/b")).rejects.toMatchObject({
    code: "IO",
    message: expect.stringMatching(/about 1048576\.0 GiB, but the disk has/),
  })
  expect(server.asked).toHaveLength(1)
})
