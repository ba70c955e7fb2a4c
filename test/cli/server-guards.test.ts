import { once } from "node:events"
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import { openGateway } from "../../src/agents/gateway.ts"
import type { ServedModel } from "../../src/endpoint/endpoint.ts"
import { serveRetriever } from "../../src/environment/search/server.ts"
import { openView } from "../../src/view/serve/view.ts"
import { madeFolder, reportsOf } from "../view/run-folder.ts"
import { built, gigpo, tiny, untilServed } from "./gigpo.ts"

// What no server of this package may lack, tried on each of them over real sockets. That there are no others is tried, too.

interface Opened {
  readonly address: string
  /** Absent: none is needed. */
  readonly key?: string | undefined
  readonly close: () => unknown
}

interface Served {
  readonly open: (folder: string) => Promise<Opened>
  /** A path that needs the key, and the status of a GET with it. */
  readonly path: string
  readonly status: number
}

const command =
  (...words: string[]): Served["open"] =>
  async (cwd) => {
    const { kill, ended, ...served } = await untilServed(words, { cwd })
    return {
      ...served,
      close: async () => {
        kill("SIGKILL")
        await ended
      },
    }
  }

const retriever =
  (key?: string): Served["open"] =>
  async () => {
    const { url: address, close } = await serveRetriever({
      ...{ corpus: { retrieve: async () => [] }, port: 0 },
      ...(key !== undefined && { key }),
    })
    return { address, key, close }
  }

const servers: Readonly<Record<string, Served>> = {
  serve: { open: command("serve", "small/model"), path: "/v1/models", status: 200 },
  engine: { open: command("engine", "small/model"), path: "/api/v1/training_runs", status: 200 },
  gateway: {
    async open() {
      const gateway = await openGateway()
      const { apiKey: key } = gateway.open({ generator: {}, models: ["policy"] } as unknown as ServedModel)
      return { address: gateway.baseURL, key, close: () => gateway[Symbol.asyncDispose]() }
    },
    ...{ path: "/v1/models", status: 200 },
  },
  view: {
    async open(folder) {
      const { url: address, close } = await openView([join(folder, "runs")])
      return { address, key: new URL(address).hash.split("=")[1], close }
    },
    ...{ path: "/api/runs", status: 200 },
  },
  "retriever with a key": { open: retriever("a-key-of-some-length"), path: "/retrieve", status: 405 },
  "retriever without a key": { open: retriever(), path: "/retrieve", status: 405 },
}

const ended = async (socket: Socket): Promise<string> => await text(socket).catch(() => "")

describe.skipIf(!built)("servers (need dist: npm run build:ts)", () => {
  let folder: string
  const opened = new Map<string, Opened>()
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-guards-"))
    expect(await gigpo(["init", "number-line", "small", ...tiny], { cwd: folder })).toMatchObject({ code: 0 })
    await madeFolder(join(folder, "runs", "one"), {}, reportsOf(1))
    for (const [name, { open }] of Object.entries(servers)) opened.set(name, await open(folder))
  })
  afterAll(async () => {
    for (const { close } of opened.values()) await close()
    await rm(folder, { recursive: true })
  })

  describe.each(Object.entries(servers))("%s", (name, { path, status }) => {
    const port = () => Number(new URL(opened.get(name)!.address).port)
    const host = () => `host: 127.0.0.1:${port()}\r\n`
    const key = () => opened.get(name)!.key
    const keyed = () => (key() === undefined ? "" : `authorization: Bearer ${key()}\r\n`)
    const head = (target: string, headers: string, method = "GET") => `${method} ${target} HTTP/1.1\r\n${headers}\r\n`
    const dial = (bytes: string): Socket => {
      const socket = connect(port(), "127.0.0.1")
      socket.on("error", () => {})
      socket.write(bytes)
      onTestFinished(() => void socket.destroy())
      return socket
    }
    /** Status of an answer that ends its connection; the whole answer is waited for, and the connection's end. */
    const refusal = async (bytes: string) => Number((await ended(dial(bytes))).slice(9, 12))
    const first = async (socket: Socket) => String((await once(socket, "data"))[0])

    it("answers with its key, and keeps the connection", async () => {
      const socket = dial(head(path, host() + keyed()))
      const told = await first(socket)
      expect(Number(told.slice(9, 12))).toBe(status)
      expect(told).toMatch(/^keep-alive: timeout=75\r$/im)
      expect(told).toMatch(/^x-content-type-options: nosniff\r$/im)
    })

    it("rejects other Hosts, foreign Origins, and hosts in the request line, also with the key", async () => {
      const foreign = [
        [`host: evil.example:${port()}\r\n`, 421],
        [`host: 127.0.0.1:1\r\n`, 421],
        [`${host()}host: evil.example\r\n`, 421],
        [`${host()}origin: https://evil.example\r\n`, 403],
        [`${host()}origin: null\r\n`, 403],
      ] as const
      for (const [headers, refused] of foreign)
        expect([headers, await refusal(head(path, `connection: close\r\n${headers}${keyed()}`))]).toEqual([
          headers,
          refused,
        ])
      const other = `http://evil.example:${port()}${path}`
      expect(await refusal(head(other, `connection: close\r\n${host()}${keyed()}`))).toBe(400)
      const own = `http://127.0.0.1:${port()}${path}`
      expect(await refusal(head(own, `connection: close\r\n${host()}${keyed()}`))).toBe(status)
    })

    it("rejects long paths, slashes and headers before it makes anything of them", async () => {
      for (const target of [
        `/a${"/".repeat(3000)}x`,
        `/${"a/".repeat(1500)}`,
        `${path}?${"x".repeat(3000)}`,
        `/${"%2f".repeat(1000)}`,
      ])
        expect(await refusal(head(target, `connection: close\r\n${host()}${keyed()}`))).toBe(414)
      expect(await refusal(head(`/a${"/".repeat(17_000)}x`, host() + keyed()))).toBe(431)
      expect(await refusal(head(path, `${host()}${keyed()}x: ${"y".repeat(17_000)}\r\n`))).toBe(431)
    })

    it("ends the connection of a client without the key with its answer, whatever it sends", async () => {
      if (key() === undefined) return
      const wrong = [
        "",
        "authorization: Bearer x\r\n",
        `authorization: Bearer ${key()}x\r\n`,
        `authorization: Bearer ${"x".repeat(15_000)}\r\n`,
        `authorization: Basic ${Buffer.from(`x:${key()}`).toString("base64")}\r\n`,
      ]
      for (const method of ["GET", "POST", "DELETE", "OPTIONS"])
        for (const headers of wrong) expect(await refusal(head(path, host() + headers, method))).toBe(401)
      expect(await refusal(`${head(path, `${host()}content-length: 1000000\r\n`, "POST")}half a body`)).toBe(401)
      expect(await refusal(`${head(path, `${host()}transfer-encoding: chunked\r\n`, "POST")}5\r\nhalf`)).toBe(401)
    })

    it("answers one of twenty pipelined requests without the key, and all with it", async () => {
      const answers = async (headers: string) => {
        const last = head(path, `connection: close\r\n${headers}`)
        return (await ended(dial(head(path, headers).repeat(19) + last))).match(/HTTP\/1\.1 \d+/g)
      }
      expect(await answers(host() + keyed())).toEqual(Array.from({ length: 20 }, () => `HTTP/1.1 ${status}`))
      if (key() !== undefined) expect(await answers(host())).toEqual(["HTTP/1.1 401"])
    })

    it("answers beside more silent connections than it has places for, and ends these", async () => {
      const asked = async () =>
        expect(await refusal(head(path, `connection: close\r\n${host()}${keyed()}`))).toBe(status)
      const closed: Promise<unknown>[] = []
      for (let batch = 0; batch < 11; batch++) {
        for (let index = 0; index < 100; index++) {
          const socket = dial(index % 2 ? "GET / HT" : "").resume()
          closed.push(new Promise((resolve) => socket.once("close", resolve)))
        }
        await asked() // the system keeps only so many that wait to be taken
      }
      await Promise.all(closed)
      await asked()
    })
  })

  it("there is no other: one file alone listens for HTTP", async () => {
    const source = new URL("../../src/", import.meta.url)
    const names = (await readdir(source, { recursive: true })).filter((name) => name.endsWith(".ts"))
    const listening: string[] = []
    for (const name of names)
      if (
        /createServer|createSecureServer|\bServer\b.*from "node:(http|net|https|http2|tls)"/.test(
          await readFile(new URL(name, source), "utf8"),
        )
      )
        listening.push(name)
    expect(listening).toEqual([join("http", "listen.ts")])
  })
})
