import { Agent, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request as plain } from "node:http"
import { Agent as SecureAgent, request as secure } from "node:https"

export interface Answer {
  readonly status: number
  readonly statusText: string
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
}

export interface Exchange {
  readonly method: "GET" | "POST"
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | undefined
  /** Bytes of the answer, after which it fails with `TooLongError`. */
  readonly most: number
  /** Milliseconds until it fails with `LateError`. */
  readonly within: number
  readonly signal?: AbortSignal | undefined
}

/** No answer came in time. */
export class LateError extends Error {
  readonly code = "LATE"
}
/** An answer of more bytes than what was asked for can have. */
export class TooLongError extends Error {}

// A socket is given up before servers do that (uvicorn after 5 s), else a request could be sent to one that nobody reads any more.
const options = { keepAlive: true, timeout: 4000 }
const agent = new Agent(options)
const secureAgent = new SecureAgent(options)

/** One request and its answer. Node's own client: with 10,000 in flight `fetch` costs twice the time. Redirects are not followed. */
export function exchange(url: URL, { method, headers, body, most, within, signal }: Exchange): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const own = url.protocol === "https:" ? { send: secure, agent: secureAgent } : { send: plain, agent }
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }
    const sent: ClientRequest = own.send(url, { method, agent: own.agent, headers: { ...headers, ...length } })
    const abort = () => sent.destroy(signal!.reason)
    const late = setTimeout(() => sent.destroy(new LateError(`no answer within ${within / 1000} s`)), within)
    const end = () => {
      clearTimeout(late)
      signal?.removeEventListener("abort", abort)
    }
    const fail = (error: unknown) => {
      end()
      sent.destroy()
      reject(error)
    }
    signal?.addEventListener("abort", abort)
    sent.on("error", fail)
    sent.on("response", (response: IncomingMessage) => {
      const pieces: Buffer[] = []
      let size = 0
      response.on("data", (piece: Buffer) => {
        size += piece.length
        if (size > most) fail(new TooLongError(`its answer is longer than ${most} bytes`))
        else pieces.push(piece)
      })
      response.on("error", fail)
      response.on("end", () => {
        end()
        const { statusCode: status = 0, statusMessage: statusText = "" } = response
        resolve({ status, statusText, headers: response.headers, bytes: Buffer.concat(pieces) })
      })
    })
    sent.end(body)
  })
}
