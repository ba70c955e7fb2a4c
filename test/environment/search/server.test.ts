import { request } from "node:http"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { memoryCorpus } from "../../../src/environment/search/corpus.ts"
import { httpRetriever } from "../../../src/environment/search/http-retriever.ts"
import { retrieverKey } from "../../../src/environment/search/retriever-key.ts"
import {
  type RetrieverServer,
  type ServeRetrieverOptions,
  serveRetriever,
} from "../../../src/environment/search/server.ts"

const passages = [
  { id: "a", contents: '"Velan Bay"\nA town on the Ordo Beck.' },
  { id: "b", contents: '"Ordo Beck"\nOrdo rises far away – très loin.' },
  { id: "c", contents: "Nothing of note" },
]
const { signal } = new AbortController()
const json = { "content-type": "application/json" }

let server: RetrieverServer
beforeEach(async () => {
  server = await serveRetriever({ corpus: await memoryCorpus(passages), port: 0, topk: 1 })
})
afterEach(() => server.close())

/** A server that closes when it is disposed of. */
async function opened(options: ServeRetrieverOptions): Promise<RetrieverServer & AsyncDisposable> {
  const other = await serveRetriever({ port: 0, ...options })
  return { ...other, [Symbol.asyncDispose]: other.close }
}

async function post(body: unknown, { url = server.url, method = "POST" } = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body)
  const response = await fetch(url, { method, ...(method === "POST" && { body: text, headers: json }) })
  return { status: response.status, body: (await response.json()) as { result?: unknown[][]; error?: string } }
}

describe("serveRetriever", () => {
  it("answers one query, with and without scores", async () => {
    expect(await post({ query: "ordo" })).toEqual({ status: 200, body: { result: [[passages[1]]] } })
    const { body } = await post({ query: "ordo", topk: 2, return_scores: true })
    expect(body.result).toEqual([
      [
        { document: passages[1], score: expect.any(Number) },
        { document: passages[0], score: expect.any(Number) },
      ],
    ])
  })

  it("answers a list of queries in its order, each with a list of its own", async () => {
    const { body } = await post({ queries: ["note", "xyzzy", "velan"], topk: null, return_scores: false })
    expect(body).toEqual({ result: [[passages[2]], [], [passages[0]]] })
    expect((await post({ queries: [] })).body).toEqual({ result: [] })
    expect((await post({ queries: ["ordo"], topk: 0 })).body.result![0]).toHaveLength(1)
    expect((await post({ queries: ["ordo"], topk: 9 })).body.result![0]).toHaveLength(2)
  })

  it.each([
    ["{", 400, /not JSON/],
    ["[]", 400, /must be a JSON object/],
    ["null", 400, /must be a JSON object/],
    ["{}", 400, /"queries", a list/],
    ['{"query":7}', 400, /"queries", a list/],
    ['{"queries":["a",7]}', 400, /"queries", a list/],
    ['{"queries":"a"}', 400, /"queries", a list/],
    ['{"query":"a","topk":-1}', 400, /"topk" must be/],
    ['{"query":"a","topk":1.5}', 400, /"topk" must be/],
    ['{"query":"a","topk":"3"}', 400, /"topk" must be/],
    ['{"query":"a","topk":1001}', 400, /"topk" must be/],
    ['{"query":"a","return_scores":"yes"}', 400, /"return_scores"/],
    [`{"query":"a","more":${"[".repeat(40)}${"]".repeat(40)}}`, 400, /nested more than 32 levels deep/],
    ["[".repeat(1_000_000), 400, /nested more than 32 levels deep/],
    [`{"query":"a","more":[${"{},".repeat(3000)}{}]}`, 400, /more than 2048 objects and lists/],
    [JSON.stringify({ queries: Array(1025).fill("a") }), 400, /1024 queries/],
  ])("rejects %.60s", async (body, status, message) => {
    expect(await post(body)).toEqual({ status, body: { error: expect.stringMatching(message) } })
  })

  it("rejects other methods, other paths and bodies that are too large, and continues", async () => {
    expect((await post({}, { method: "GET" })).status).toBe(405)
    expect((await post({ query: "a" }, { url: server.url.replace("/retrieve", "/") })).status).toBe(404)
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const upload = request(server.url, { method: "POST", headers: json }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      upload.on("error", reject)
      upload.write(" ".repeat(2 ** 20 + 1))
    })
    expect(status).toBe(413)
    expect((await post({ query: "ordo" })).status).toBe(200)
  })

  it("takes JSON alone, which pages of other origins cannot send unasked", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""])
      expect(
        (await fetch(server.url, { method: "POST", body: '{"query":"ordo"}', headers: { "content-type": type } }))
          .status,
      ).toBe(415)
  })

  it("rejects more passages than an answer may have before it searches", async () => {
    let searched = 0
    const corpus = {
      retrieve: async () => {
        searched++
        return []
      },
    }
    await using other = await opened({ corpus })
    for (const body of [
      { queries: Array(1024).fill("a"), topk: 10 },
      { queries: Array(11).fill("a"), topk: 1000 },
      { query: "a".repeat(32_769) },
    ])
      expect(await post(body, other)).toMatchObject({
        status: 400,
        body: { error: expect.stringMatching(/may have|more than/) },
      })
    expect(searched).toBe(0)
    expect((await post({ queries: Array(10).fill("a"), topk: 1000 }, other)).status).toBe(200)
  })

  it("stops at an answer that is too long, which leaves nothing half sent", async () => {
    let searched = 0
    const contents = "x".repeat(2 ** 20)
    const corpus = {
      retrieve: async () => {
        searched++
        return [{ id: "a", contents, score: 1 }]
      },
    }
    await using other = await opened({ corpus })
    expect(await post({ queries: Array(1000).fill("a") }, other)).toEqual({
      status: 400,
      body: { error: expect.stringMatching(/smaller topk/) },
    })
    expect(searched).toBe(9)
  })

  it("searches nothing more for a client that is gone", async () => {
    const gone = new AbortController()
    let searched = 0
    const corpus = {
      async retrieve() {
        if (++searched === 3) gone.abort()
        await new Promise((resolve) => setTimeout(resolve, 5))
        return []
      },
    }
    await using other = await opened({ corpus })
    const body = JSON.stringify({ queries: Array(1000).fill("a") })
    await expect(fetch(other.url, { method: "POST", body, headers: json, signal: gone.signal })).rejects.toThrow()
    await expect
      .poll(async () => {
        const before = searched
        await new Promise((resolve) => setTimeout(resolve, 50))
        return searched - before
      })
      .toBe(0)
    expect(searched).toBeLessThan(100)
  })

  it("needs the key where it has one, beyond this machine always, and our client sends it to its own server alone", async () => {
    const corpus = await memoryCorpus(passages)
    await expect(serveRetriever({ corpus, port: 0, host: "0.0.0.0" })).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    const key = "a key of the house".replaceAll(" ", "-")
    await using other = await opened({ corpus, key })
    expect((await post({ query: "ordo" }, other)).status).toBe(401)
    const client = httpRetriever(other.url, { requestForm: "single", timeout: 5, attempts: 1, delay: 0 })
    await expect(client.retrieve("ordo", 1, signal)).rejects.toThrow(/401/)
    vi.stubEnv("GIGPO_RETRIEVER_KEY", key)
    expect(await client.retrieve("ordo", 1, signal)).toHaveLength(1)
    expect(retrieverKey("http://retriever.example:8000/retrieve")).toBeUndefined()
    vi.stubEnv("GIGPO_RETRIEVER_URL", "http://retriever.example:8000/")
    expect(retrieverKey("http://retriever.example:8000/retrieve")).toBe(key)
    expect(retrieverKey("http://retriever.example.evil:8000/retrieve")).toBeUndefined()
    vi.unstubAllEnvs()
  })

  it("understands our client in both forms", async () => {
    for (const requestForm of ["single", "batch"] as const) {
      const client = httpRetriever(server.url, { requestForm, timeout: 5, attempts: 1, delay: 0 })
      const hits = await client.retrieve("ordo", 2, signal)
      expect(hits.map(({ id, contents }) => ({ id, contents }))).toEqual([passages[1], passages[0]])
      expect(hits).toEqual(await (await memoryCorpus(passages)).retrieve("ordo", 2, signal))
    }
  })

  it("says so when a search fails", async () => {
    const reason = new Error("secret path")
    const corpus = { retrieve: () => Promise.reject(reason) }
    const told: unknown[] = []
    const broken = await serveRetriever({ corpus, port: 0, onError: (error) => told.push(error) })
    expect(await post({ query: "a" }, broken)).toEqual({ status: 500, body: { error: "The search failed." } })
    expect((await post("{", broken)).status).toBe(400)
    expect(told).toEqual([reason])
    await broken.close()
  })

  it("closes when it is told to or aborted, with connections open, and frees its port", async () => {
    await post({ query: "ordo" })
    const port = Number(new URL(server.url).port)
    await server.close()
    await server.close()
    await expect(fetch(server.url, { method: "POST" })).rejects.toThrow()

    const controller = new AbortController()
    const corpus = await memoryCorpus(passages)
    const again = await serveRetriever({ corpus, port, signal: controller.signal })
    expect(again.url).toBe(server.url)
    await expect(serveRetriever({ corpus, port })).rejects.toMatchObject({
      code: "IO",
      message: /Cannot listen on 127/,
    })
    controller.abort()
    await again.close()
    await expect(fetch(again.url, { method: "POST" })).rejects.toThrow()
    await expect(serveRetriever({ corpus, port, signal: controller.signal })).rejects.toThrow()
  })

  it.each([
    [{ topk: 0 }, /^topk must be an integer from 1 to 1000, not 0\.$/],
    [{ topk: 1001 }, /^topk/],
    [{ topk: 1.5 }, /^topk/],
    [{ port: -1 }, /^port must be an integer from 0 to 65535, not -1\.$/],
    [{ port: 65_536 }, /^port/],
    [{ port: Number.NaN }, /^port/],
    [{ port: "8000" as unknown as number }, /^port/],
  ])("rejects %j", async (options, message) => {
    const corpus = await memoryCorpus(passages)
    await expect(serveRetriever({ corpus, port: 0, ...options })).rejects.toMatchObject({ code: "BAD_CONFIG", message })
  })
})
