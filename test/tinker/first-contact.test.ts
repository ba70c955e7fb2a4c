import { once } from "node:events"
import { createServer, type RequestListener } from "node:http"
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net"
import { afterEach, describe, expect, it } from "vitest"
import { checkEngine } from "../../src/cli/doctor-engine.ts"
import { hopeless } from "../../src/engine/remote/first-contact.ts"
import { openSession, type SessionOptions } from "../../src/engine/remote/session.ts"

const open: { server: Server; sockets: Set<Socket> }[] = []

afterEach(async () => {
  for (const { server, sockets } of open.splice(0)) {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, "close")
  }
})

async function listening(server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on("connection", (socket: Socket) => sockets.add(socket.on("error", () => {})))
  open.push({ server, sockets })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return (server.address() as AddressInfo).port
}

const http = (answer: RequestListener) => listening(createServer(answer))
const tcp = (answer: (socket: Socket) => void) => listening(createTcpServer(answer))
const status =
  (code: number, body = "", headers: Record<string, string> = {}): RequestListener =>
  (_, response) => {
    response.writeHead(code, headers).end(body)
  }

/** A port that was free just now. */
async function closedPort(): Promise<number> {
  const server = createTcpServer()
  const port = await listening(server)
  server.close()
  await once(server, "close")
  open.pop()
  return port
}

const connect = (url: string, more: Partial<SessionOptions> = {}) =>
  openSession({ url, connectTimeout: 0.3, onWarning: () => {}, ...more })

describe("the first request to an engine", () => {
  const cases: Record<string, [url: () => Promise<string>, code: string, message: RegExp, key?: string]> = {
    "a closed port": [
      async () => `http://127.0.0.1:${await closedPort()}`,
      "ENGINE_LOST",
      /ECONNREFUSED .*Nothing listens there/,
    ],
    "a closed port by name": [
      async () => `http://localhost:${await closedPort()}`,
      "ENGINE_LOST",
      /ECONNREFUSED .*Nothing listens there/,
    ],
    "a name that does not resolve": [
      async () => "http://no-such-engine.invalid",
      "ENGINE_LOST",
      /no-such-engine.*does not resolve/,
    ],
    "https to a server without TLS": [
      async () => `https://127.0.0.1:${await http(status(200, "{}"))}`,
      "ENGINE_LOST",
      /TLS handshake failed.*http:\/\//,
    ],
    "a server that speaks something else": [
      async () => `http://127.0.0.1:${await tcp((socket) => socket.write("SSH-2.0-OpenSSH_9.6\r\n"))}`,
      "ENGINE_LOST",
      /is not HTTP/,
    ],
    "a page": [
      async () =>
        `http://127.0.0.1:${await http(status(200, "<!doctype html><p>It works</p>", { "content-type": "text/html" }))}`,
      "ENGINE_REJECTED",
      /not JSON but text\/html.*path is wrong.*before \/api\/v1/,
    ],
    "another API": [
      async () => `http://127.0.0.1:${await http(status(200, '{"status":"ok"}'))}`,
      "ENGINE_REJECTED",
      /not a server of the Tinker API/,
    ],
    "an empty answer": [
      async () => `http://127.0.0.1:${await http(status(204))}`,
      "ENGINE_REJECTED",
      /not a server of the Tinker API/,
    ],
    "a wrong path": [
      async () => `http://127.0.0.1:${await http(status(404, '{"detail":"Not Found"}'))}/v2`,
      "ENGINE_REJECTED",
      /404: Not Found.*before \/api\/v1/,
    ],
    "a path that takes no POST": [
      async () => `http://127.0.0.1:${await http(status(405))}`,
      "ENGINE_REJECTED",
      /405.*before \/api\/v1/,
    ],
    "a redirect": [
      async () => `http://127.0.0.1:${await http(status(308, "", { location: "https://elsewhere.example/api" }))}`,
      "ENGINE_REJECTED",
      /redirects \(308: https:\/\/elsewhere\.example\/api\)/,
    ],
    "no key": [
      async () => `http://127.0.0.1:${await http(status(401, '{"detail":"who is that"}'))}`,
      "ENGINE_REJECTED",
      /a request without a key .*who is that.*TINKER_API_KEY/,
    ],
    "a wrong key": [
      async () => `http://127.0.0.1:${await http(status(403, '{"detail":"no such key"}'))}`,
      "ENGINE_REJECTED",
      /rejects the key .*no such key.*TINKER_API_KEY/,
      "tml-wrong",
    ],
    silence: [
      async () => `http://127.0.0.1:${await tcp(() => {})}`,
      "ENGINE_LOST",
      /accepts the connection but sends no response, for 0\.3 s/,
    ],
    "an answer that does not end": [
      async () => `http://127.0.0.1:${await http((_, response) => response.writeHead(200).write("{"))}`,
      "ENGINE_LOST",
      /sends no response, for 0\.3 s/,
    ],
    "a connection that is closed at once": [
      async () => `http://127.0.0.1:${await tcp((socket) => socket.destroy())}`,
      "ENGINE_LOST",
      /for 0\.3 s/,
    ],
    "a proxy without its server": [
      async () => `http://127.0.0.1:${await http(status(502, "Bad Gateway"))}`,
      "ENGINE_LOST",
      /502: Bad Gateway, for 0\.3 s/,
    ],
    "a server that is still starting": [
      async () => `http://127.0.0.1:${await http(status(503, '{"detail":"loading"}'))}`,
      "ENGINE_LOST",
      /503: loading, for 0\.3 s.*connectTimeout/,
    ],
    "an unpaid bill": [
      async () => `http://127.0.0.1:${await http(status(402, '{"detail":"no credit"}'))}`,
      "ENGINE_LOST",
      /402: no credit/,
    ],
  }
  // The limit of a test is far below the patience of a run, 300 s.
  it.each(Object.entries(cases))("%s", { timeout: 60_000 }, async (_, [url, code, message, key]) => {
    await expect(connect(await url(), { key })).rejects.toMatchObject({ code, message })
  })

  it("is sent again while the server starts, within `connectTimeout`", async () => {
    let asked = 0
    const port = await http((request, response) => {
      const body = request.url?.endsWith("create_session") ? '{"session_id":"s"}' : "{}"
      if (asked++ === 0) response.writeHead(503, { "retry-after-ms": "5" }).end()
      else response.end(body)
    })
    const session = await connect(`http://127.0.0.1:${port}`, { connectTimeout: 60 })
    expect(session.id).toBe("s")
    await session.close()
  })

  it("may have /api/v1 in its address", async () => {
    const paths: (string | undefined)[] = []
    const port = await http((request, response) => {
      paths.push(request.url)
      response.end('{"session_id":"s"}')
    })
    await (await connect(`http://127.0.0.1:${port}/api/v1/`)).close()
    expect(paths[0]).toBe("/api/v1/client/config")
  })

  it("is a finding of the doctor", async () => {
    const url = `http://127.0.0.1:${await closedPort()}`
    const [finding] = await checkEngine({ url, model: undefined, rank: 8 })
    expect(finding).toMatchObject({
      state: "missing",
      value: expect.stringMatching(/Nothing listens there.* \[ENGINE_LOST\]$/),
    })
  })
})

describe("an outage in the middle of a run", () => {
  it("is waited out, and told once", async () => {
    let failing = 0
    const port = await http((request, response) => {
      if (request.url?.endsWith("/later") && failing-- > 0)
        response.writeHead(503, { "retry-after-ms": "5" }).end("busy")
      else response.end('{"session_id":"s","done":true}')
    })
    const warnings: string[] = []
    const session = await connect(`http://127.0.0.1:${port}`, { onWarning: (text) => warnings.push(text) })
    for (const [times, told] of [
      [2, 0],
      [9, 1],
      [9, 2],
    ] as const) {
      failing = times
      expect(await session.post("/later", {})).toMatchObject({ done: true })
      expect(warnings).toHaveLength(told)
    }
    expect(warnings[0]).toMatch(/does not answer \/later \(503: busy\).*300 s/)
    await session.close()
  })
})

it.each([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "CERT_HAS_EXPIRED",
  "ERR_TLS_CERT_ALTNAME_INVALID",
])("the certificate error %s is not tried again", (code) => {
  const failure = { kind: "not-taken", status: 0, reason: "self-signed certificate", code } as const
  expect(hopeless(failure, false)).toMatch(/certificate is not accepted.*NODE_EXTRA_CA_CERTS/)
})
