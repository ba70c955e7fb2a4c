import type { IncomingMessage, ServerResponse } from "node:http"
import { afterEach, describe, expect, it } from "vitest"
import { type HttpRetrieverOptions, httpRetriever } from "../../../src/environment/search/http-retriever.ts"
import { type FakeRetriever, fakeRetriever, json } from "./fake-retriever.ts"

const servers: FakeRetriever[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

async function serve(respond: (response: ServerResponse, number: number, request: IncomingMessage) => void) {
  const server = await fakeRetriever(respond)
  servers.push(server)
  return server
}

const options: HttpRetrieverOptions = { requestForm: "single", timeout: 5, attempts: 4, delay: 0.001 }
const found = { result: [[{ document: { id: "7", contents: '"T"\ntext' }, score: 0.5 }]] }
const { signal } = new AbortController()

describe("httpRetriever", () => {
  it("sends a query in either form and reads documents with scores", async () => {
    const server = await serve((response) => json(response, found))
    for (const requestForm of ["single", "batch"] as const) {
      const hits = await httpRetriever(server.url, { ...options, requestForm }).retrieve("who?", 2, signal)
      expect(hits).toEqual([{ id: "7", contents: '"T"\ntext', score: 0.5 }])
    }
    expect(server.requests).toEqual([
      { query: "who?", topk: 2, return_scores: true },
      { queries: ["who?"], topk: 2, return_scores: true },
    ])
  })

  it("reads bare documents, titles apart from texts, empty results, and no more than it asked for", async () => {
    const answers = [
      { result: [[{ id: 1, title: "T", text: "text" }, { contents: "b" }, { contents: "c" }]] },
      { result: [[]] },
      { result: [] },
    ]
    const server = await serve((response, number) => json(response, answers[number - 1]))
    const retriever = httpRetriever(server.url, options)
    expect(await retriever.retrieve("q", 2, signal)).toEqual([
      { id: "1", contents: '"T"\ntext', score: 0 },
      { id: "", contents: "b", score: 0 },
    ])
    expect(await retriever.retrieve("q", 2, signal)).toEqual([])
    expect(await retriever.retrieve("q", 2, signal)).toEqual([])
  })

  it.each([500, 502, 503, 504])("tries again after status %i, and succeeds once the server does", async (status) => {
    const server = await serve((response, number) => (number < 4 ? json(response, {}, status) : json(response, found)))
    expect(await httpRetriever(server.url, options).retrieve("q", 3, signal)).toHaveLength(1)
    expect(server.requests).toHaveLength(4)
  })

  it("sends the query to no other server that an answer names", async () => {
    const other = await serve((response) => json(response, found))
    const server = await serve((response) => response.writeHead(307, { location: other.url }).end())
    await expect(httpRetriever(server.url, options).retrieve("q", 3, signal)).rejects.toThrow("HTTP status 307")
    expect(other.requests).toEqual([])
  })

  it("gives up after as many attempts as it may", async () => {
    const server = await serve((response) => json(response, {}, 503))
    await expect(httpRetriever(server.url, options).retrieve("q", 3, signal)).rejects.toThrow("HTTP status 503")
    expect(server.requests).toHaveLength(4)
  })

  it("tries again after connections that were refused or cut", async () => {
    const server = await serve((response, number) => (number < 3 ? response.destroy() : json(response, found)))
    expect(await httpRetriever(server.url, options).retrieve("q", 3, signal)).toHaveLength(1)
    expect(server.requests).toHaveLength(3)
    const gone = await fakeRetriever(() => {})
    await gone.close()
    await expect(httpRetriever(gone.url, options).retrieve("q", 3, signal)).rejects.toMatchObject({
      name: "RetrieverFailure",
      reason: "the retriever cannot be reached",
      message: `the retriever ${gone.url} cannot be reached (ECONNREFUSED); start the server or correct the option retriever`,
      cause: expect.objectContaining({ cause: expect.objectContaining({ code: "ECONNREFUSED" }) }),
    })
  })

  it("tries again when there is no answer in time, and when a body does not end", async () => {
    const server = await serve((response, number) => {
      if (number === 2) response.write('{"result":')
      if (number > 2) json(response, found)
    })
    const retriever = httpRetriever(server.url, { ...options, timeout: 0.3, attempts: 20 })
    expect(await retriever.retrieve("q", 3, signal)).toHaveLength(1)
    const silent = await serve(() => {})
    await expect(
      httpRetriever(silent.url, { ...options, timeout: 0.5, attempts: 2 }).retrieve("q", 3, signal),
    ).rejects.toMatchObject({ reason: "the retriever did not answer within 0.5 s" })
    expect(silent.requests).toHaveLength(2)
  })

  it.each([
    ["status 404", (response: ServerResponse) => json(response, {}, 404), "HTTP status 404"],
    ["status 422", (response: ServerResponse) => json(response, {}, 422), "HTTP status 422"],
    ["status 501", (response: ServerResponse) => json(response, {}, 501), "HTTP status 501"],
    ["nonsense", (response: ServerResponse) => json(response, "<html>"), "not JSON \\(.*<.*\\)"],
    ["null", (response: ServerResponse) => json(response, null), "no list of lists"],
    ["no result", (response: ServerResponse) => json(response, { results: [[]] }), "no list of lists"],
    ["a flat list", (response: ServerResponse) => json(response, { result: [{ contents: "a" }] }), "no list of lists"],
    ["a number for a document", (response: ServerResponse) => json(response, { result: [[7]] }), "without contents"],
    ["null for a document", (response: ServerResponse) => json(response, { result: [[null]] }), "without contents"],
    [
      "no contents",
      (response: ServerResponse) => json(response, { result: [[{ document: { id: "1" } }]] }),
      "without contents",
    ],
  ])("does not try again after %s", async (_, respond, message) => {
    const server = await serve(respond)
    await expect(httpRetriever(`${server.url}?key=secret`, options).retrieve("q", 3, signal)).rejects.toMatchObject({
      name: "RetrieverFailure",
      // What the model reads is the same whichever server it was.
      reason: expect.not.stringContaining("127.0.0.1"),
      message: expect.stringMatching(`the retriever ${server.url} answered with .*${message}.*; start the server or`),
    })
    expect(server.requests).toHaveLength(1)
  })

  it("does not read an answer without end", async () => {
    let sent = 0
    const server = await serve((response) => {
      const block = Buffer.alloc(2 ** 20, " ")
      const more = () => {
        while (!response.destroyed && sent < 500) {
          sent++
          if (!response.write(block)) return
        }
      }
      response.on("drain", more)
      more()
    })
    await expect(httpRetriever(server.url, options).retrieve("q", 3, signal)).rejects.toThrow("more than 16 MiB")
    expect(server.requests).toHaveLength(1)
    expect(sent).toBeLessThan(100)
  })

  it("stops at once when the signal is aborted: in an attempt, in a body, between attempts, before", async () => {
    const stages: [string, (response: ServerResponse) => void][] = [
      ["waiting for an answer", () => {}],
      ["reading a body", (response) => response.write("{")],
      ["waiting for another attempt", (response) => json(response, {}, 500)],
    ]
    for (const [, respond] of stages) {
      const controller = new AbortController()
      const server = await serve((response) => {
        respond(response)
        setTimeout(() => controller.abort(new Error("enough")), 30)
      })
      const retriever = httpRetriever(server.url, { ...options, delay: 60, timeout: 60 })
      await expect(retriever.retrieve("q", 3, controller.signal)).rejects.toThrow("enough")
      expect(server.requests).toHaveLength(1)
      await expect(retriever.retrieve("q", 3, controller.signal)).rejects.toThrow("enough")
      expect(server.requests).toHaveLength(1)
    }
  })
})
