import { connect, type Socket } from "node:net"
import { text } from "node:stream/consumers"
import { expect, it, onTestFinished } from "vitest"
import { type Gateway, openGateway } from "../../src/agents/gateway.ts"
import { tokenText } from "../../src/chat/dialect.ts"
import { type HttpOptions, listen } from "../../src/http/listen.ts"
import { type Answer, events, joined, type Speaking, speaking } from "./speaking.ts"

const secret = "a secret of the house"

/** A gateway with one key, and what it logs. */
async function opened(completions: readonly string[], options: HttpOptions & Speaking = {}) {
  const { limits, host, names, ...more } = options
  const { voice, tokenizer, policy } = await speaking(completions, more)
  const logged: unknown[] = []
  const onError = (error: unknown) => void logged.push(error)
  const gateway = await openGateway({ limits, host, names, onError })
  onTestFinished(() => gateway[Symbol.asyncDispose]())
  const { apiKey, close } = gateway.open({ generator: voice, models: ["policy"], textOf: tokenText(tokenizer) })
  return { gateway, apiKey, close, policy, logged, voice, port: Number(new URL(gateway.baseURL).port) }
}

const body = { model: "policy", messages: [{ role: "user", content: "Hi" }] }

function post(gateway: Gateway, key: string | undefined, init: RequestInit = {}, more: object = {}): Promise<Response> {
  return fetch(`${gateway.baseURL}/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ ...body, ...more }),
    ...init,
    headers: { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }), ...init.headers },
  })
}

/** The server still answers this key, and answers it right. */
async function sound(gateway: Gateway, key: string, completion: string) {
  const told = (await (await post(gateway, key)).json()) as Answer
  expect(told.choices[0].message.content).toBe(completion)
}

function dial(port: number, bytes: string): Socket {
  const socket = connect(port, "127.0.0.1")
  socket.on("error", () => {}) // resets are as good as ends
  socket.write(bytes)
  return socket
}

/** All that comes until the connection ends, however it does. */
async function heard(socket: Socket): Promise<string> {
  return await text(socket).catch(() => "")
}

it("answers nobody without a key, with another's, or with one that has expired", async () => {
  const { gateway, apiKey, close } = await opened(["mine"])
  await sound(gateway, apiKey, "mine")
  const keys = [undefined, "", "x", `${apiKey}x`, apiKey.slice(0, -1), apiKey.toUpperCase(), "undefined", "__proto__"]
  for (const key of keys) {
    for (const path of ["models", "chat/completions", "responses", "embeddings", "../../etc/passwd", "..%2f"]) {
      const response = await fetch(`${gateway.baseURL}/${path}`, {
        headers: key ? { authorization: `Bearer ${key}` } : {},
      })
      expect(response.status).toBe(401)
      expect(await response.text()).not.toContain(apiKey.slice(0, 20))
    }
  }
  const basic = { authorization: `Basic ${Buffer.from(`x:${apiKey}`).toString("base64")}` }
  expect((await post(gateway, undefined, { headers: basic })).status).toBe(401)
  expect((await fetch(`${gateway.baseURL}/models?key=${apiKey}&api_key=${apiKey}`)).status).toBe(401)
  close()
  expect((await post(gateway, apiKey)).status).toBe(401)
})

it("a key that expires while a completion is sampled ends it, for its own episode alone", async () => {
  const { gateway, apiKey, close, policy, voice } = await opened(["one two three four five six"], { pause: 5 })
  const other = gateway.open({ generator: voice, models: ["policy"], textOf: () => ({ token: "", bytes: [] }) })
  const running = [apiKey, other.apiKey].map((key) => post(gateway, key))
  await expect.poll(() => policy.requests.length).toBe(2)
  close()
  const [mine, theirs] = await Promise.all(running)
  expect([mine!.status, theirs!.status]).toEqual([401, 200])
  other.close()
})

it("rejects bodies that are too long, too deep or not JSON, to the client's ears, and continues", async () => {
  const { gateway, apiKey, logged, port } = await opened(["yes"])
  const long = Buffer.alloc(100 * 2 ** 20, " ")
  expect((await post(gateway, apiKey, { body: long })).status).toBe(413)
  const endless = new ReadableStream({ pull: (to) => to.enqueue(long.subarray(0, 2 ** 20)) })
  let sent = 0
  const chunked = endless.pipeThrough(
    new TransformStream({ transform: (chunk, to) => (++sent > 100 ? to.terminate() : to.enqueue(chunk)) }),
  )
  const init = { body: chunked, duplex: "half" } as RequestInit
  expect((await post(gateway, apiKey, init)).status).toBe(413)
  // The answer is heard to its end, and the connection ends with it.
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${apiKey}\r\n`
  const socket = dial(port, `${head}content-type: application/json\r\ncontent-length: ${long.length}\r\n\r\n`)
  socket.write(long)
  expect(await heard(socket)).toMatch(/^HTTP\/1.1 413 .*The request is too long.*\r\n0\r\n\r\n$/s)
  const bodies: [string, number][] = [
    ["[".repeat(1e6), 400],
    ['{"a":'.repeat(1e5), 400],
    ["{", 400],
    ["", 400],
  ]
  for (const [wrong, status] of bodies) expect((await post(gateway, apiKey, { body: wrong })).status).toBe(status)
  expect((await post(gateway, apiKey, { headers: { "content-type": "text/plain" } })).status).toBe(415)
  await sound(gateway, apiKey, "yes")
  expect(logged).toEqual([])
})

it("ends connections that are slow to ask, and floods of headers", async () => {
  const { gateway, apiKey, port } = await opened(["yes"], { limits: { headers: 50, request: 100 } })
  const host = `host: 127.0.0.1:${port}\r\n`
  const head = `POST /v1/chat/completions HTTP/1.1\r\n${host}authorization: Bearer ${apiKey}\r\ncontent-type: application/json\r\n`
  const slow = [
    dial(port, "GET /v1/models HTTP/1.1\r\n"), // and never the rest
    dial(port, `${head}content-length: 1000\r\n\r\n{"model":`),
    dial(port, `${head}transfer-encoding: chunked\r\n\r\n5\r\n{"mod`),
  ]
  for (const socket of slow) expect(await heard(socket)).toMatch(/^(HTTP\/1.1 4\d\d |$)/)
  const headless = await opened(["yes"], { limits: { headers: 50 } })
  expect(await heard(dial(headless.port, "GET /v1/models HTTP/1.1\r\n"))).toMatch(/^(HTTP\/1.1 4\d\d |$)/)
  const floods = [
    `GET /v1/models HTTP/1.1\r\n${host}${"x: y\r\n".repeat(1e5)}\r\n`,
    `GET /v1/models HTTP/1.1\r\n${host}x: ${"y".repeat(1e6)}\r\n\r\n`,
    `GET /${"v".repeat(1e6)} HTTP/1.1\r\n${host}\r\n`,
    `GET /v1/models HTTP/1.1\r\n${host}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n`,
    `POST /v1/chat/completions HTTP/1.1\r\n${host}content-length: -1\r\n\r\n`,
    "\u0000\u0001\u0002\r\n\r\n",
  ]
  for (const flood of floods) expect(await heard(dial(port, flood))).toMatch(/^(HTTP\/1.1 4\d\d |$)/)
  await sound(gateway, apiKey, "yes")
})

it("takes requests that break off for what they are", async () => {
  const { gateway, apiKey, port, policy, logged } = await opened(["yes"])
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${apiKey}\r\ncontent-type: application/json\r\n`
  const whole = JSON.stringify(body)
  for (const sent of [1, whole.length - 1, whole.length])
    await new Promise((resolve) => {
      const socket = dial(port, `${head}content-length: ${whole.length}\r\n\r\n${whole.slice(0, sent)}`)
      socket.once("close", resolve)
      socket.once("connect", () => setImmediate(() => socket.resetAndDestroy()))
    })
  for (const wrong of ["zz\r\n", "5\r\n{\r\n", "-1\r\n", "ffffffffffffffffff\r\n"])
    expect(await heard(dial(port, `${head}transfer-encoding: chunked\r\n\r\n${wrong}0\r\n\r\n`))).toMatch(/^(HTTP\/1.1 400 |$)/) // biome-ignore format: one line
  await sound(gateway, apiKey, "yes")
  expect(policy.requests.length).toBeLessThanOrEqual(2)
  expect(logged).toEqual([])
})

it("names other than its own, and pages of other origins, hear nothing", async () => {
  const { apiKey, port } = await opened(["yes"])
  const ask = async (host: string, more = "") =>
    (await heard(dial(port, `GET /v1/models HTTP/1.1\r\n${host}authorization: Bearer ${apiKey}\r\nconnection: close\r\n${more}\r\n`))).slice(9, 12) // biome-ignore format: one line
  const own = `host: 127.0.0.1:${port}\r\n`
  expect(await ask(own)).toBe("200")
  for (const host of ["", "host:\r\n", "host: evil.example\r\n", `host: 127.0.0.1.evil.example:${port}\r\n`, "host: 127.0.0.1:1\r\n"]) // biome-ignore format: one line
    expect(["400", "421"]).toContain(await ask(host))
  for (const origin of [
    "https://evil.example",
    "null",
    `http://evil.example:${port}`,
    "file://",
    "chrome-extension://x",
  ])
    expect(await ask(own, `origin: ${origin}\r\n`)).toBe("403")
})

it("rejects to listen beyond this machine without a key", async () => {
  for (const host of ["0.0.0.0", "::", "192.0.2.1"])
    await expect(listen(async () => Response.json({}), { host })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringContaining("key"),
    })
  const { gateway } = await opened(["yes"], { host: "0.0.0.0" })
  expect((await post(gateway, undefined)).status).toBe(401)
})

it("tells the engine whose completions it samples, so that clients share its steps", async () => {
  const { answer, policy, apiKey } = await speaking(["yes"])
  const asked = async (client?: string) => {
    const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" }
    const request = new Request("http://gigpo.invalid/v1/chat/completions", {
      ...{ method: "POST", headers, body: JSON.stringify(body) },
    })
    expect((await answer(request, client)).status).toBe(200)
    return policy.requests.at(-1)!.client
  }
  const [one, again, other, none] = [await asked("192.0.2.1"), await asked("192.0.2.1"), await asked("192.0.2.2"), await asked()] // biome-ignore format: one line
  expect([again, none]).toEqual([one, undefined])
  expect(one).not.toBe(other)
  expect(Number.isSafeInteger(one)).toBe(true)
})

it("tells faults to the log alone, and there no keys", async () => {
  const { gateway, apiKey, policy, logged } = await opened(["yes"])
  const { sample } = policy
  policy.sample = async () => {
    throw new Error(secret)
  }
  const told = await post(gateway, apiKey, {}, { messages: [{ role: "user", content: "my words" }] })
  expect(told.status).toBe(500)
  expect(await told.text()).not.toContain(secret)
  expect(logged.map((error) => (error as Error).message)).toEqual([secret])
  expect(JSON.stringify(logged.map((error) => (error as Error).stack))).not.toMatch(new RegExp(`${apiKey}|my words`))
  policy.sample = sample
  await sound(gateway, apiKey, "yes")
})

it("a client who does not read holds nobody up and loses nothing; what waits for it is put together", async () => {
  const long = "word ".repeat(400).trim()
  const { gateway, apiKey, port, policy } = await opened([long, "yes"])
  const asked = JSON.stringify({ ...body, stream: true, max_tokens: 4000 })
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${apiKey}\r\ncontent-type: application/json\r\nconnection: close\r\n`
  const lazy = dial(port, `${head}content-length: ${asked.length}\r\n\r\n${asked}`)
  lazy.pause()
  await expect.poll(() => policy.requests.length).toBe(1)
  await sound(gateway, apiKey, "yes")
  const all = await heard(lazy)
  expect(all).toContain("[DONE]")
  const chunks = [...all.matchAll(/data: (\{.*\})/g)].map(([, data]) => JSON.parse(data!))
  const [choice] = joined(chunks)
  expect([choice.content, choice.finish_reason]).toEqual([long, "stop"])
  // Without a socket, whose buffers take much: nothing is read until all is said.
  const { post: ask, policy: other } = await speaking([long])
  let said = 0
  const { sample } = other
  other.sample = async (request) => {
    const completion = await sample.call(other, request)
    said = completion.tokens.length
    return completion
  }
  const response = await ask("chat/completions", { ...body, stream: true, max_tokens: 4000 })
  await expect.poll(() => said).toBeGreaterThan(400)
  const read = await events(response)
  expect(read.length).toBeLessThan(5)
  expect(joined(read)[0].content).toBe(long)
})

it("ends the connection of a client who takes nothing of its answer, and the sampling with it", async () => {
  let gone: AbortSignal | undefined
  const endless = async (request: Request) => {
    gone = request.signal
    return new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(2 ** 20)) }, { highWaterMark: 0 }))
  }
  const server = await listen(endless, { limits: { reader: 50 } })
  onTestFinished(() => server.close())
  const lazy = dial(server.port, `GET / HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\n\r\n`)
  lazy.pause()
  await expect.poll(() => gone?.aborted, { timeout: 20_000 }).toBe(true)
  lazy.destroy()
})
