import { once } from "node:events"
import { createServer, type IncomingMessage } from "node:http"
import { type AddressInfo, connect } from "node:net"
import { afterEach, describe, expect, it, vi } from "vitest"
import { proxyFor } from "../../src/hub/proxy.ts"
import { resolveModel } from "../../src/hub/resolve-model.ts"
import { contentOf, freshHub, neededOf, quick } from "./cache-folder.ts"
import { someModel, token } from "./hub-server.ts"

afterEach(() => {
  vi.unstubAllEnvs()
})

interface TestProxy extends AsyncDisposable {
  readonly port: number
  /** Hosts to which tunnels were asked for. */
  readonly tunnels: IncomingMessage[]
  /** Other requests. */
  readonly others: IncomingMessage[]
  status: number
}

/** A proxy whose tunnels end at this machine, at the port that is asked for. */
async function startProxy(): Promise<TestProxy> {
  const server = createServer((request, response) => {
    proxy.others.push(request)
    response.writeHead(500).end()
  })
  server.on("connect", (request, socket) => {
    proxy.tunnels.push(request)
    socket.on("error", () => {})
    if (proxy.status !== 200) return void socket.end(`HTTP/1.1 ${proxy.status} no\r\nContent-Length: 0\r\n\r\n`)
    const to = connect(Number(request.url!.split(":")[1]), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n")
      to.pipe(socket).pipe(to)
    })
    to.on("error", () => socket.destroy())
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const proxy: TestProxy = {
    ...{ port: (server.address() as AddressInfo).port, tunnels: [], others: [], status: 200 },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
  return proxy
}

describe("a proxy", () => {
  it("carries the whole download, redirects included", async () => {
    const files = someModel()
    await using server = await freshHub({ "a/b": { files } })
    await using proxy = await startProxy()
    // Names that only the proxy knows.
    vi.stubEnv("HF_ENDPOINT", server.url.replace("localhost", "hub.test"))
    vi.stubEnv("HF_TOKEN", token)
    vi.stubEnv("HTTP_PROXY", `http://user:p%40ss@127.0.0.1:${proxy.port}`)
    vi.stubEnv("NO_PROXY", "example.com")
    server.redirect = (digest) => `${server.store.replace("127.0.0.1", "store.test")}/${digest}`
    expect(await contentOf(await resolveModel("a/b", {}, quick))).toEqual(neededOf(files))
    const hosts = new Set(proxy.tunnels.map(({ url }) => url!.split(":")[0]))
    expect([...hosts].sort()).toEqual(["hub.test", "store.test"])
    expect(proxy.others).toEqual([])
    for (const { headers } of proxy.tunnels)
      expect(headers["proxy-authorization"]).toBe(`Basic ${Buffer.from("user:p@ss").toString("base64")}`)
    for (const { headers } of server.asked) expect(headers).not.toHaveProperty("proxy-authorization")
  })

  it("does not get the token, nor requests to this machine", async () => {
    const files = someModel()
    await using _server = await freshHub({ "a/b": { files } })
    await using proxy = await startProxy()
    vi.stubEnv("HF_TOKEN", token)
    for (const name of ["HTTP_PROXY", "HTTPS_PROXY"]) vi.stubEnv(name, `http://127.0.0.1:${proxy.port}`)
    expect(await contentOf(await resolveModel("a/b", {}, quick))).toEqual(neededOf(files))
    expect(proxy.tunnels).toEqual([])
    vi.stubEnv("HF_ENDPOINT", "https://hub.test:8443")
    proxy.status = 403
    await expect(resolveModel("a/c", {}, quick)).rejects.toMatchObject({ code: "HUB_REJECTED" })
    expect(proxy.tunnels.map(({ url }) => url)).toEqual(["hub.test:8443"])
    expect(JSON.stringify(proxy.tunnels.map(({ rawHeaders }) => rawHeaders))).not.toContain(token)
    expect(proxy.others).toEqual([])
  })

  it.each<[number, string, RegExp]>([
    [
      407,
      "HUB_REJECTED",
      /hub\.test cannot be reached: the proxy http:\/\/127\.0\.0\.1:\d+ \(HTTPS_PROXY\) requires a user name/,
    ],
    [403, "HUB_REJECTED", /\(HTTPS_PROXY\) refuses the connection \(403\).*NO_PROXY/],
    [
      502,
      "HUB_LOST",
      /^The proxy http:\/\/127\.0\.0\.1:\d+ \(HTTPS_PROXY\) for hub\.test answers with an error \(502\)/,
    ],
  ])("that answers with %i is named in the error", async (status, code, message) => {
    await using _ = await freshHub({})
    await using proxy = await startProxy()
    proxy.status = status
    vi.stubEnv("HF_ENDPOINT", "https://hub.test")
    vi.stubEnv("HTTPS_PROXY", `http://127.0.0.1:${proxy.port}`)
    await expect(resolveModel("a/b", {}, quick)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    })
  })

  it("that is not there is named in the error, without its password", async () => {
    await using _ = await freshHub({})
    const { port, ...gone } = await startProxy()
    await gone[Symbol.asyncDispose]()
    vi.stubEnv("HF_ENDPOINT", "https://hub.test")
    vi.stubEnv("HTTPS_PROXY", `http://user:secret@127.0.0.1:${port}`)
    await expect(resolveModel("a/b", {}, quick)).rejects.toMatchObject({
      code: "HUB_LOST",
      message: expect.stringMatching(
        /^The proxy http:\/\/127\.0\.0\.1:\d+ \(HTTPS_PROXY\) for hub\.test refuses the connection\.(?!.*secret)/,
      ),
    })
  })
})

it.each<[string, Record<string, string>, string | undefined]>([
  ["https://hf.co/x", { HTTPS_PROXY: "http://p:1" }, "HTTPS_PROXY http://p:1/"],
  ["https://hf.co/x", { HTTPS_PROXY: "http://p:1", https_proxy: "q:2" }, "https_proxy http://q:2/"],
  ["https://hf.co/x", { HTTP_PROXY: "http://p:1" }, undefined],
  ["http://hf.co/x", { HTTP_PROXY: "http://p:1" }, "HTTP_PROXY http://p:1/"],
  ["https://hf.co/x", { HTTPS_PROXY: "" }, undefined],
  ["https://hf.co/x", { HTTPS_PROXY: "http://p:1", NO_PROXY: "*" }, undefined],
  ["https://a.hf.co/x", { HTTPS_PROXY: "http://p:1", NO_PROXY: "b.com, .hf.co" }, undefined],
  ["https://a.hf.co/x", { HTTPS_PROXY: "http://p:1", no_proxy: "hf.co:443" }, undefined],
  ["https://a.hf.co/x", { HTTPS_PROXY: "http://p:1", no_proxy: "hf.co:8443" }, "HTTPS_PROXY http://p:1/"],
  ["https://ahf.co/x", { HTTPS_PROXY: "http://p:1", no_proxy: "hf.co" }, "HTTPS_PROXY http://p:1/"],
  ["https://[fe80::1]/x", { HTTPS_PROXY: "http://p:1", no_proxy: "fe80::1" }, undefined],
  ["http://localhost:9/x", { HTTP_PROXY: "http://p:1" }, undefined],
  ["http://127.0.0.1:9/x", { HTTP_PROXY: "http://p:1" }, undefined],
])("%s with %j", (address, environment, expected) => {
  const found = proxyFor(new URL(address), environment)
  expect(found && `${found.variable} ${found.url.href}`).toBe(expected)
})

it.each(["socks5://user:secret@p:1", "http://", "http://user:secret@:1"])(
  "rejects the proxy %s without its password",
  (given) => {
    expect(() => proxyFor(new URL("https://hf.co"), { HTTPS_PROXY: given })).toThrow(/^HTTPS_PROXY must be(?!.*secret)/)
  },
)
