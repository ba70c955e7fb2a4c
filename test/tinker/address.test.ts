import { once } from "node:events"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, it } from "vitest"
import { Connection } from "../../src/engine/remote/connection.ts"

const onWarning = () => {}

it.each([
  ["https://me:hunter2@host:1", undefined, /contains a user or password/],
  ["https://me@host:1", undefined, /contains a user or password/],
  ["https://host:1/?x=1", undefined, /contains a query or fragment/],
  ["https://host:1/#y", undefined, /contains a query or fragment/],
  ["https://host:1", "bad\nkey", /TINKER_API_KEY.* contains a line break/],
  ["https://host:1", "bad key", /TINKER_API_KEY.* contains a line break/],
  ["https://host:1", "schlüssel", /TINKER_API_KEY.* not valid in a header/],
])("an engine at %s with the key %j is rejected, and neither is shown", (url, key, message) => {
  const open = () => new Connection({ url, key, onWarning })
  expect(open).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) }))
  expect(open).not.toThrow(/hunter2|bad|schl/)
})

it("an engine's address may end in the API's path", () => {
  expect(new Connection({ url: "https://host:1/api/v1/", key: "tml-0", onWarning }).url).toBe("https://host:1")
})

it.each([
  "http://host:1",
  "http://10.0.0.7:1",
  "http://localhost.evil.test",
  "http://127.0.0.1.evil.test",
  "http://0.0.0.0:1",
])("a key is not sent to %s, over which everybody could read it", (url) => {
  const key = "tml-secret"
  const open = () => new Connection({ url, key, onWarning })
  expect(open).toThrow(
    expect.objectContaining({ message: expect.stringMatching(/TINKER_API_KEY\) would be sent .* unencrypted/) }),
  )
  expect(open).not.toThrow(/tml-secret/)
  expect(() => new Connection({ url, key, plainHttp: true, onWarning })).not.toThrow()
  expect(() => new Connection({ url, onWarning })).not.toThrow()
})

it.each(["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "http://127.9.9.9", "https://host:1"])(
  "a key is sent to %s",
  (url) => expect(() => new Connection({ url, key: "tml-secret", onWarning })).not.toThrow(),
)

it("a server that says which key it was sent is not repeated", async () => {
  const server = createServer((request, response) =>
    response.writeHead(401).end(JSON.stringify({ detail: `wrong key ${request.headers["x-api-key"]}.` })),
  ).listen(0, "127.0.0.1")
  await once(server, "listening")
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const outcome = await new Connection({ url, key: "tml-secret", onWarning }).attempt({ path: "/x" })
    expect(outcome).toMatchObject({ status: 401, reason: "wrong key [the key]." })
  } finally {
    server.close()
  }
})

it("a download that is sent on to another host has no key there, and none leaves TLS", async () => {
  const seen: string[] = []
  const listen = async (answer: (response: ServerResponse) => void) => {
    const server = createServer((request, response) => {
      seen.push(`${request.headers.host} ${request.headers.authorization ?? "no key"}`)
      answer(response)
    }).listen(0, "127.0.0.1")
    await once(server, "listening")
    return { server, port: (server.address() as AddressInfo).port }
  }
  const other = await listen((response) => response.end("archive"))
  const first = await listen((response) =>
    response.writeHead(302, { location: `http://localhost:${other.port}/x` }).end(),
  )
  try {
    const url = `http://127.0.0.1:${first.port}`
    const answer = await new Connection({ url, key: "tml-secret", onWarning }).download("/x")
    expect(await answer.text()).toBe("archive")
    expect(seen).toEqual([`127.0.0.1:${first.port} Bearer tml-secret`, `localhost:${other.port} no key`])
  } finally {
    first.server.close()
    other.server.close()
  }
})
