import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface FakeRetriever {
  readonly url: string
  /** The bodies of the requests so far. */
  readonly requests: unknown[]
  close(): Promise<void>
}

/** Server with a configurable answer per request; requests are counted from 1. */
export async function fakeRetriever(
  respond: (response: ServerResponse, number: number, request: IncomingMessage) => void,
): Promise<FakeRetriever> {
  const requests: unknown[] = []
  const server = createServer(async (request, response) => {
    let body = ""
    for await (const chunk of request) body += chunk
    requests.push(JSON.parse(body))
    respond(response, requests.length, request)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/retrieve`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(typeof body === "string" ? body : JSON.stringify(body))
}
