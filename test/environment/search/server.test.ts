import { request } from "node:http"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { memoryCorpus } from "../../../src/environment/search/corpus.ts"
import { httpRetriever } from "../../../src/environment/search/http-retriever.ts"
import { type RetrieverServer, serveRetriever } from "../../../src/environment/search/server.ts"

const passages = [
  { id: "a", contents: '"Velan Bay"\nA town on the Ordo Beck.' },
  { id: "b", contents: '"Ordo Beck"\nOrdo rises far away – très loin.' },
  { id: "c", contents: "Nothing of note" },
]
const { signal } = new AbortController()

let server: RetrieverServer
beforeEach(async () => {
  server = await serveRetriever({ corpus: await memoryCorpus(passages), port: 0, topk: 1 })
})
afterEach(() => server.close())

async function post(body: unknown, { url = server.url, method = "POST" } = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body)
  const response = await fetch(url, { method, ...(method === "POST" && { body: text }) })
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
    ["{}", 400, /"query" or/],
    ['{"query":7}', 400, /"query" or/],
    ['{"queries":["a",7]}', 400, /"query" or/],
    ['{"queries":"a"}', 400, /"query" or/],
    ['{"query":"a","topk":-1}', 400, /"topk" must be/],
    ['{"query":"a","topk":1.5}', 400, /"topk" must be/],
    ['{"query":"a","topk":"3"}', 400, /"topk" must be/],
    ['{"query":"a","topk":1001}', 400, /"topk" must be/],
    ['{"query":"a","return_scores":"yes"}', 400, /"return_scores"/],
    [JSON.stringify({ queries: Array(1025).fill("a") }), 400, /1024 queries/],
  ])("refuses %.60s", async (body, status, message) => {
    expect(await post(body)).toEqual({ status, body: { error: expect.stringMatching(message) } })
  })

  it("refuses other methods, other paths and bodies that are too large, and goes on", async () => {
    expect((await post({}, { method: "GET" })).status).toBe(405)
    expect((await post({ query: "a" }, { url: server.url.replace("/retrieve", "/") })).status).toBe(404)
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const upload = request(server.url, { method: "POST" }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      upload.on("error", reject)
      upload.write(" ".repeat(2 ** 20 + 1))
    })
    expect(status).toBe(413)
    expect((await post({ query: "ordo" })).status).toBe(200)
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
    [{ topk: 0 }, /^topk must be a whole number from 1 to 1000, not 0\.$/],
    [{ topk: 1001 }, /^topk/],
    [{ topk: 1.5 }, /^topk/],
    [{ port: -1 }, /^port must be a whole number from 0 to 65535, not -1\.$/],
    [{ port: 65_536 }, /^port/],
    [{ port: Number.NaN }, /^port/],
    [{ port: "8000" as unknown as number }, /^port/],
  ])("refuses %j", async (options, message) => {
    const corpus = await memoryCorpus(passages)
    await expect(serveRetriever({ corpus, port: 0, ...options })).rejects.toMatchObject({ code: "BAD_CONFIG", message })
  })
})
