import { GigpoError } from "../../util/errors.ts"
import { type Frame, readFrame } from "./frames.ts"
import type { ServerAddress } from "./server-address.ts"

/** Limits of a connection to an OpenEnv server. */
export interface ConnectionLimits {
  /** Seconds for the connection to open, and for each response. */
  readonly messageTimeout: number
  readonly maxFrameBytes: number
}

/** WebSocket connection with one request at a time. */
export interface Connection {
  /**
   * Sends a request and returns the response. Rejects with ENVIRONMENT_FAILED, ENVIRONMENT_TIMEOUT, or the signal's reason; the connection
   * cannot be used after that.
   */
  request(message: object): Promise<Frame>
  /** Closes the socket in any state. Never rejects. */
  close(): Promise<void>
}

/** Seconds for the server's part of the closing handshake. */
const closeTimeout = 1
/** Maximum number of frames that a server may send without a request, such as the error before it closes. */
const maxUnread = 16

/** Opens a connection that lasts until it is closed or the signal is aborted. */
export async function connect(
  address: ServerAddress,
  { messageTimeout, maxFrameBytes }: ConnectionLimits,
  signal: AbortSignal,
): Promise<Connection> {
  // Imported here, because few runs need it and the import would slow the start of all.
  const { WebSocket } = await import("ws")
  signal.throwIfAborted()
  const socket = new WebSocket(address.socket, { maxPayload: maxFrameBytes, perMessageDeflate: false })
  const frames: string[] = []
  let failure: unknown
  let wake = () => {}
  let busy = false

  const fail = (reason: unknown) => {
    failure ??= reason
    socket.terminate()
    wake()
  }
  const failed = (what: string, cause?: unknown) =>
    fail(new GigpoError("ENVIRONMENT_FAILED", `openenv: ${address.name} ${what}`, { cause }))
  const abort = () => fail(signal.reason)
  signal.addEventListener("abort", abort, { once: true })
  socket.on("open", () => wake())
  socket.on("message", (data, isBinary) => {
    if (isBinary) return failed("sent a binary frame, which is not of the OpenEnv protocol; check url.")
    if (frames.push(data.toString()) > maxUnread) return failed("sends frames without a request; check url.")
    wake()
  })
  socket.on("error", (error: Error & { code?: string }) => failed(explain(error, maxFrameBytes), error))
  socket.on("close", (code, reason) => {
    signal.removeEventListener("abort", abort)
    const why = reason.length > 0 ? `${code}, ${reason}` : code
    failed(`closed the connection (${why}); the server's log says why.`)
  })

  /** Waits for `ready`. Frames that arrived before a failure are still used. */
  const wait = async (what: string, ready: () => boolean): Promise<void> => {
    const timeout = () => {
      const sentence = `openenv: ${address.name} did not ${what} within ${messageTimeout} s; increase messageTimeout, or see the server's log.`
      fail(new GigpoError("ENVIRONMENT_TIMEOUT", sentence))
    }
    const timer = setTimeout(timeout, messageTimeout * 1000)
    try {
      await new Promise<void>((resolve) => {
        wake = () => {
          if (ready() || failure !== undefined) resolve()
        }
        wake()
      })
    } finally {
      clearTimeout(timer)
      wake = () => {}
    }
    signal.throwIfAborted()
    if (!ready()) throw failure
  }

  const close = async () => {
    if (socket.readyState === WebSocket.OPEN) {
      socket.send('{"type":"close"}', () => {})
      socket.close()
    } else if (socket.readyState === WebSocket.CONNECTING) socket.terminate()
    if (socket.readyState === WebSocket.CLOSED) return
    const timer = setTimeout(() => socket.terminate(), closeTimeout * 1000)
    await new Promise<void>((resolve) => socket.once("close", () => resolve()))
    clearTimeout(timer)
  }

  try {
    await wait("open a connection", () => socket.readyState === WebSocket.OPEN || frames.length > 0)
  } catch (error) {
    await close()
    throw error
  }
  return {
    async request(message) {
      signal.throwIfAborted()
      if (busy)
        throw new GigpoError("BAD_ARGUMENT", "An OpenEnv episode takes one step at a time; await the previous step.")
      const unsolicited = frames.length > 0
      if (!unsolicited) {
        if (failure !== undefined) throw failure
        socket.send(JSON.stringify(message), () => {})
        busy = true
        await wait("answer", () => frames.length > 0).finally(() => {
          busy = false
        })
      }
      const text = frames.shift()!
      const frame = readFrame(text)
      if (typeof frame === "string") failed(`sent ${show(text)}, which is not of the OpenEnv protocol: ${frame}.`)
      // Only errors may come without a request, such as that all slots are taken.
      else if (unsolicited && frame.type !== "error") failed("answered before a request; check url.")
      else return frame
      throw failure
    },
    close,
  }
}

function explain(error: Error & { code?: string }, maxFrameBytes: number): string {
  if (error.code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH")
    return `sent a frame of more than ${maxFrameBytes} bytes; increase maxFrameBytes.`
  if (error.code?.startsWith("WS_ERR")) return `violates the WebSocket protocol: ${error.message}.`
  // If several addresses were tried, the message is empty and only the code gives the reason.
  return `cannot be reached: ${error.message || error.code}. Start the OpenEnv server, or correct url.`
}

function show(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)
}
