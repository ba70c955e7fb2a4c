import { request } from "node:http"
import { connect } from "node:net"
import { text } from "node:stream/consumers"
import { afterEach, expect, it, vi } from "vitest"
import { type HttpServer, listen } from "../../src/http/listen.ts"

let server: HttpServer | undefined
const everybody = { known: () => true, refusal: "" }
afterEach(() => server?.close())

/** What the server answers to a request whose headers are exactly these. */
async function send(headers: Record<string, string>, body?: string): Promise<{ status: number; text: string }> {
  return await new Promise((resolve, reject) => {
    const sent = request(
      { port: server!.port, host: server!.host, method: body === undefined ? "GET" : "POST", headers, setHost: false },
      (response) => {
        let text = ""
        response.setEncoding("utf8")
        response.on("data", (chunk) => (text += chunk))
        response.on("end", () => resolve({ status: response.statusCode!, text }))
        response.on("error", reject)
      },
    )
    sent.on("error", reject)
    sent.end(body)
  })
}

it("answers under its own names alone, and no foreign pages", async () => {
  server = await listen(async () => Response.json({ ok: true }))
  const [port, host] = [server.port, `127.0.0.1:${server.port}`]
  const status = async (headers: Record<string, string>) => (await send(headers)).status
  expect(await status({ host })).toBe(200)
  expect(await status({ host: `localhost:${port}` })).toBe(200)
  expect(await status({ host: "evil.example" })).toBe(421)
  expect(await status({ host: `evil.example:${port}` })).toBe(421)
  expect(await status({ host, origin: "https://evil.example" })).toBe(403)
  expect(await status({ host, origin: "null" })).toBe(403)
  expect(await status({ host, origin: `http://${host}` })).toBe(200)
})

it("tells the answerer when the client is gone, and a stream that breaks does not look whole", async () => {
  let aborted: AbortSignal | undefined
  server = await listen(async (asked) => {
    aborted = asked.signal
    return new Response(
      new ReadableStream(
        { pull: (to) => (asked.url.endsWith("/broken") ? to.error(new Error("broke")) : to.enqueue(Buffer.from("x"))) },
        { highWaterMark: 0 },
      ),
    )
  })
  const gone = new AbortController()
  const response = await fetch(`${server.url}/endless`, { signal: gone.signal })
  await response.body!.getReader().read()
  gone.abort()
  await expect.poll(() => aborted?.aborted).toBe(true)
  await expect(fetch(`${server.url}/broken`).then((broken) => broken.text())).rejects.toThrow()
})

it("waits for a client that takes a large answer slowly but steadily", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  try {
    const size = 64 << 20 // far more than the operating system keeps
    const pull = (to: ReadableStreamDefaultController) => {
      to.enqueue(new Uint8Array(size))
      to.close()
    }
    server = await listen(async () => new Response(new ReadableStream({ pull })), { limits: { reader: 1000 } })
    const socket = connect(server.port, server.host)
    socket.write(`GET / HTTP/1.1\r\nhost: ${server.host}:${server.port}\r\nconnection: close\r\n\r\n`)
    let [taken, next] = [0, 1]
    for await (const part of socket) {
      taken += part.length
      if (taken < (next * size) / 4) continue
      next++
      vi.advanceTimersByTime(700)
    }
    expect(taken).toBeGreaterThan(size)
  } finally {
    vi.useRealTimers()
  }
})

it("lets running requests end when it closes, for so long", async () => {
  let arrived = false
  server = await listen(async ({ signal }) => {
    arrived = true
    await new Promise((resolve) => setTimeout(resolve, 100))
    return Response.json({ aborted: signal.aborted })
  })
  const running = fetch(server.url).then((response) => response.json())
  await expect.poll(() => arrived).toBe(true)
  await server.close(5)
  expect(await running).toEqual({ aborted: false })
  await expect(fetch(server.url)).rejects.toThrow()
})

it("drops what is no HTTP", async () => {
  server = await listen(async () => Response.json({}))
  const socket = connect(server.port, server.host)
  socket.write("nonsense\r\n\r\n")
  expect(await text(socket)).toMatch(/^HTTP\/1.1 400 /) // a socket that nobody reads never closes
  expect((await fetch(server.url)).status).toBe(200)
})

it("answers by every address where it listens on all of them, and by names that it was told", async () => {
  server = await listen(async () => Response.json({}), { host: "0.0.0.0", names: ["api.example"], keys: everybody })
  const { port } = server
  const status = async (host: string) => (await send({ host })).status
  for (const host of [`192.0.2.7:${port}`, `[2001:db8::7]:${port}`, "192.0.2.7", "api.example", `API.example:${port}`])
    expect([host, await status(host)]).toEqual([host, 200])
  for (const host of [`evil.example:${port}`, "192.0.2.7.evil.example", "[evil]", "api.example:1"])
    expect([host, await status(host)]).toEqual([host, 421])
  expect((await send({ host: "192.0.2.7", origin: "http://192.0.2.7" })).status).toBe(403)
  await server.close()
  server = await listen(async () => Response.json({}))
  expect(await status(`192.0.2.7:${server.port}`)).toBe(421)
})

it("keeps connections longer than agents' tools take between two calls", async () => {
  server = await listen(async () => Response.json({}))
  expect((await fetch(server.url)).headers.get("keep-alive")).toBe("timeout=75")
})

it("makes no Request, Response or stream for a client that does not pass", async () => {
  server = await listen(async () => Response.json({ ok: true }), {
    keys: { known: () => false, open: (path) => path === "/open", refusal: "No key." },
  })
  const made = [vi.spyOn(globalThis, "Request"), vi.spyOn(globalThis, "Response"), vi.spyOn(Response, "json")]
  const host = `127.0.0.1:${server.port}`
  try {
    expect(await send({ host })).toEqual({ status: 401, text: expect.stringContaining("No key.") })
    expect((await send({ host }, "{}")).status).toBe(401)
    expect((await send({ host: "evil.example" })).status).toBe(421)
    for (const one of made) expect(one).not.toHaveBeenCalled()
  } finally {
    for (const one of made) one.mockRestore()
  }
})

it("closes the connection of a client that does not pass, and says why to it alone", async () => {
  server = await listen(async () => Response.json({ ok: true }), { keys: { known: () => false, refusal: "No key." } })
  const socket = connect(server.port, "127.0.0.1")
  const one = `GET / HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\n\r\n`
  socket.write(one.replace("GET", "HEAD"))
  const head = await text(socket)
  expect(head).toMatch(/^HTTP\/1.1 401 /)
  expect(head).toMatch(/connection: close/i)
  expect(head.endsWith("\r\n\r\n")).toBe(true)
  expect(head).toMatch(/www-authenticate: Bearer/i)
  const second = connect(server.port, "127.0.0.1")
  second.write(one + one)
  expect((await text(second)).match(/HTTP\/1.1 401/g)).toHaveLength(1)
})
