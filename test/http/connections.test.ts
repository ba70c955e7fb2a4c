import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { text } from "node:stream/consumers"
import { expect, it, onTestFinished } from "vitest"
import { clientAddress } from "../../src/http/address.ts"
import { connectionsFor } from "../../src/http/descriptors.ts"
import { type Answer, type HttpLimits, listen } from "../../src/http/listen.ts"

const keys = { known: (key: string) => key === "right", open: (path: string) => path === "/open", refusal: "No." }

/** A server, and how to call it by hand: `dial` gives a socket that has sent so much, from one of this machine's addresses. */
async function opened(limits: Partial<HttpLimits>, answer: Answer = async () => Response.json({})) {
  const server = await listen(answer, { keys, limits })
  onTestFinished(() => server.close())
  const head = (path: string, more = "") => `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\n${more}\r\n`
  const keyed = (path = "/") => head(path, "authorization: Bearer right\r\n")
  const dial = async (bytes = "", localAddress = "127.0.0.1"): Promise<Socket> => {
    const socket = connect({ port: server.port, host: "127.0.0.1", localAddress })
    socket.on("error", () => {})
    onTestFinished(() => void socket.destroy())
    await once(socket, "connect")
    socket.write(bytes)
    return socket
  }
  return { server, head, keyed, dial }
}

const ended = async (socket: Socket): Promise<string> => await text(socket).catch(() => "")
/** First piece of what comes. */
const answered = async (socket: Socket): Promise<string> => String((await once(socket, "data"))[0])

it("closes connections without a key after a short while: silent, with half a head, and between two requests", async () => {
  const { dial, head, keyed } = await opened({ idle: 300 })
  const silent = [await dial(), await dial("GET / HTT"), await dial(head("/open")), await dial(head("/"))]
  const kept = await dial(keyed())
  const told = await Promise.all(silent.map(ended))
  expect(told.map((one) => one.slice(9, 12))).toEqual(["", "", "200", "401"])
  expect(told[2]).toMatch(/^keep-alive: timeout=1\r$/im)
  expect(told[3]).toMatch(/^connection: close\r$/im)
  await new Promise((resolve) => setTimeout(resolve, 300))
  kept.write(keyed())
  expect(await answered(kept)).toMatch(/^HTTP\/1.1 200 /)
})

it("slow pieces of a head do not keep a connection open", async () => {
  const { dial } = await opened({ idle: 200 })
  const slow = await dial("GET / HTTP/1.1\r\n")
  const drip = setInterval(() => slow.write("x: y\r\n"), 20)
  onTestFinished(() => clearInterval(drip))
  expect(await ended(slow)).toBe("")
})

it("lets a connection without a key make room, the oldest first, then an idle one, and never one that is answered", async () => {
  let release = () => {}
  const waiting = new Promise<void>((resolve) => {
    release = resolve
  })
  const { dial, keyed } = await opened({ connections: 4 }, async (request) => {
    if (request.url.endsWith("/slow")) await waiting
    return Response.json({})
  })
  const [first, second] = [await dial(), await dial()]
  const idle = await dial(keyed())
  expect(await answered(idle)).toMatch(/ 200 /)
  expect(await ended(first)).toBe("")
  const slow = await dial(keyed("/slow"))
  expect(await ended(second)).toBe("")
  const another = await dial(keyed("/slow"))
  expect(await ended(idle)).toBe("")
  // Both places of this address are being answered: there is none for a third, and there still is for clients of others.
  expect(await ended(await dial(keyed()))).toBe("")
  expect(await answered(await dial(keyed(), "127.0.0.2"))).toMatch(/ 200 /)
  release()
  expect(await answered(slow)).toMatch(/ 200 /)
  expect(await answered(another)).toMatch(/ 200 /)
})

it("answers the requests of a connection one after the other, and few that wait", async () => {
  let [running, most] = [0, 0]
  const { dial, keyed } = await opened({}, async () => {
    most = Math.max(most, ++running)
    await new Promise((resolve) => setTimeout(resolve, 1))
    running--
    return Response.json({})
  })
  const some = await dial(`${keyed().repeat(19)}${keyed().replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n")}`)
  expect((await ended(some)).match(/HTTP\/1.1 200/g)).toHaveLength(20)
  expect(most).toBe(1)
  expect(await ended(await dial(keyed().repeat(1000)))).toBe("")
  expect(most).toBe(1)
})

it("does nothing for requests that follow a rejected one", async () => {
  let asked = 0
  const { dial, head, keyed } = await opened({}, async () => {
    asked++
    return Response.json({})
  })
  const told = await ended(await dial(head("/").repeat(10) + keyed()))
  expect(told.match(/HTTP\/1.1 /g)).toHaveLength(1)
  expect(asked).toBe(0)
})

it("makes nothing for HEAD", async () => {
  let pulled = 0
  const { dial, keyed } = await opened({}, async () => {
    const pull = (to: ReadableStreamDefaultController) => {
      pulled++
      to.enqueue(new Uint8Array(9))
    }
    return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }))
  })
  expect(await answered(await dial(keyed().replace("GET", "HEAD")))).toMatch(/^HTTP\/1.1 200 .*\r\n\r\n$/s)
  expect(pulled).toBe(0)
})

it("holds so many bytes of bodies, and of one client half of them; others are rejected meanwhile", async () => {
  const held: (() => void)[] = []
  const { server } = await opened({ bodies: 4000 }, async (request) => {
    const { length } = await request.text()
    await new Promise<void>((resolve) => held.push(resolve))
    return Response.json(length)
  })
  const post = async (length: number) =>
    await fetch(server.url, { method: "POST", body: "x".repeat(length), headers: { authorization: "Bearer right" } })
  const first = post(1500)
  await expect.poll(() => held.length).toBe(1)
  const refused = await post(1500)
  expect([refused.status, refused.headers.get("connection")]).toEqual([503, "close"])
  held[0]!()
  expect(await (await first).json()).toBe(1500)
  const second = post(1500)
  await expect.poll(() => held.length).toBe(2)
  held[1]!()
  expect((await second).status).toBe(200)
})

it("leaves descriptors for everything that is no connection", () => {
  expect([20_000, 1024, 256, Number.POSITIVE_INFINITY].map(connectionsFor)).toEqual([
    19_744,
    768,
    192,
    Number.POSITIVE_INFINITY,
  ])
  expect(connectionsFor()).toBeGreaterThan(0)
})

it.each([
  ["127.0.0.1", "127.0.0.1"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["::1", "0:0:0:0::"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"],
  ["2001:db8:1:2::6", "2001:db8:1:2::"],
  ["fe80::1%eth0", "fe80:0:0:0::"],
  [undefined, ""],
])("knows the client of %s as %s", (address, client) => {
  expect(clientAddress(address)).toBe(client)
})
