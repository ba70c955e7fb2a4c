import { Agent, request } from "node:http"
import { gzipSync } from "node:zlib"
import { expect, it, onTestFinished } from "vitest"
import { openGateway } from "../../src/agents/gateway.ts"
import { tokenText } from "../../src/chat/dialect.ts"
import { type Answer, speaking } from "./speaking.ts"

// Over a socket: the health check, HEAD, and bodies with gzip.

async function opened(limits = {}) {
  const { voice, tokenizer, policy } = await speaking(["yes"], { maxPositions: 512 })
  const gateway = await openGateway({ limits })
  onTestFinished(() => gateway[Symbol.asyncDispose]())
  const { apiKey } = gateway.open({ generator: voice, models: ["policy"], textOf: tokenText(tokenizer) })
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" }
  const post = async (body: Uint8Array<ArrayBuffer>, encoding: string) => {
    const init = { method: "POST", headers: { ...headers, "content-encoding": encoding }, body }
    const response = await fetch(`${gateway.baseURL}/chat/completions`, init)
    return { status: response.status, told: (await response.json()) as Answer }
  }
  return { gateway, policy, headers, post }
}

const body = JSON.stringify({ model: "policy", messages: [{ role: "user", content: "Hi" }] })
const zipped = (text: string | Uint8Array) => new Uint8Array(gzipSync(text))

it("answers the health check without a key, and nothing else", async () => {
  const { gateway } = await opened()
  for (const method of ["GET", "HEAD"]) {
    const response = await fetch(`${gateway.url}/health`, { method })
    expect([response.status, await response.text()]).toEqual([200, method === "GET" ? '{"status":"ok"}' : ""])
  }
  for (const path of ["/v1/models", "/health/more", "/v1/health", "/api/tags"])
    expect((await fetch(`${gateway.url}${path}`)).status).toBe(401)
  const foreign = { host: "evil.example" }
  const status = await new Promise((resolve) => {
    request(`${gateway.url}/health`, { headers: foreign }, (response) => resolve(response.statusCode)).end()
  })
  expect(status).toBe(421)
})

it("answers HEAD with the headers of GET", async () => {
  const { gateway, headers } = await opened()
  const status = async (path: string) => {
    const response = await fetch(`${gateway.url}${path}`, { method: "HEAD", headers })
    return [response.status, response.headers.get("content-type"), await response.text()]
  }
  for (const path of ["/v1/models", "/v1/models/policy", "/api/tags", "/api/version"])
    expect(await status(path)).toEqual([200, "application/json", ""])
  expect((await status("/v1/models/other"))[0]).toBe(404)
  expect((await status("/v1/chat/completions"))[0]).toBe(405)
})

it("reads bodies with gzip, and rejects other encodings and invalid gzip", async () => {
  const { post, policy } = await opened()
  expect((await post(zipped(body), "gzip")).status).toBe(200)
  expect((await post(zipped(body), "GZIP")).status).toBe(200)
  expect((await post(new Uint8Array(Buffer.from(body)), "identity")).status).toBe(200)
  expect(policy.requests.length).toBe(3)
  expect(await post(zipped(body), "br")).toMatchObject({
    status: 415,
    told: { error: { message: expect.stringContaining("gzip") } },
  })
  expect(await post(new Uint8Array(Buffer.from(body)), "gzip")).toMatchObject({
    status: 400,
    told: { error: { message: "The body is not valid gzip." } },
  })
  expect((await post(zipped(body).slice(0, -9), "gzip")).status).toBe(400)
  expect(policy.requests.length).toBe(3)
})

it("limits a body by what it is decompressed to", async () => {
  const { post, gateway, headers } = await opened()
  const bomb = zipped(Buffer.alloc(64 << 20, " "))
  expect(bomb.length).toBeLessThan(100_000)
  expect(await post(bomb, "gzip")).toMatchObject({
    status: 413,
    told: { error: { message: expect.stringContaining("1056768") } },
  })
  expect((await fetch(`${gateway.baseURL}/models`, { headers })).status).toBe(200)
})

it("counts what is decompressed against the memory of all bodies", async () => {
  const { post } = await opened({ bodies: 400_000 })
  const half = JSON.stringify({ model: "policy", messages: [{ role: "user", content: " ".repeat(250_000) }] })
  expect((await post(zipped(half), "gzip")).status).toBe(503)
  expect((await post(zipped(body), "gzip")).status).toBe(200) // what it held is free again
})

it("keeps the connection after a body with gzip", async () => {
  const { gateway, headers, policy } = await opened()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  const ports: unknown[] = []
  for (let i = 0; i < 2; i++)
    await new Promise<void>((resolve, reject) => {
      const sent = request(
        `${gateway.baseURL}/chat/completions`,
        { method: "POST", agent, headers: { ...headers, "content-encoding": "gzip" } },
        (response) => {
          ports.push(sent.socket?.localPort)
          response.resume().on("end", resolve)
        },
      )
      sent.on("error", reject).end(zipped(body))
    })
  expect([ports[0] === ports[1], policy.requests.length]).toEqual([true, 2])
})
