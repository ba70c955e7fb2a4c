import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { type WebSocket, WebSocketServer } from "ws"

export interface Message {
  readonly type: string
  readonly data?: Record<string, unknown>
}

/** What a test changes of the server. */
export interface ServerOptions {
  /** Environments at once; default 2. */
  readonly slots?: number
  /** Answers in place of the environment; `undefined` leaves it to the environment, null says nothing at all. */
  readonly answer?: (message: Message, socket: WebSocket, count: number) => unknown
  readonly schema?: unknown
}

export interface TestServer {
  readonly url: string
  /** Environments in use now, and the most there ever were. */
  readonly used: () => { now: number; most: number; refused: number }
  /** Every message received. */
  readonly received: unknown[]
  stop(): Promise<void>
}

const metadata = {
  additionalProperties: true,
  description: "Additional metadata for the action",
  title: "Metadata",
  type: "object",
}

export const actionSchema = {
  additionalProperties: false,
  properties: { metadata, command: { title: "Command", type: "string" } },
  required: ["command"],
  title: "A",
  type: "object",
}

/** An OpenEnv server with a two-command environment: `stop` ends it with reward 1, `go` continues. */
export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const received: unknown[] = []
  const used = { now: 0, most: 0, refused: 0 }
  const http: Server = createServer((request, response) => {
    const body = request.url === "/schema" ? (options.schema ?? { action: actionSchema }) : undefined
    response.writeHead(body === undefined ? 404 : 200, { "content-type": "application/json", connection: "close" })
    response.end(JSON.stringify(body ?? { detail: "Not Found" }))
  })
  const sockets = new WebSocketServer({ server: http, path: "/ws" })
  sockets.on("connection", (socket) => {
    if (used.now >= (options.slots ?? 2)) {
      used.refused++
      socket.send(JSON.stringify(error("CAPACITY_REACHED", "All slots are taken")))
      socket.close(1000)
      return
    }
    used.now++
    used.most = Math.max(used.most, used.now)
    let count = 0
    const session = newSession()
    socket.on("close", () => used.now--)
    socket.on("error", () => {})
    socket.on("message", (text) => {
      const message = JSON.parse(text.toString())
      received.push(message)
      const own = options.answer?.(message, socket, count++)
      const answer = own === undefined ? session(message) : own
      if (answer === null) return
      socket.send(typeof answer === "string" || Buffer.isBuffer(answer) ? answer : JSON.stringify(answer))
    })
  })
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    used: () => used,
    received,
    async stop() {
      for (const socket of sockets.clients) socket.terminate()
      sockets.close()
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}

export function error(code: string, message: string, errors?: readonly object[]) {
  return { type: "error", data: { message, code, ...(errors && { errors }) } }
}

export function observation(text: string, reward: unknown, done: unknown, more: object = {}) {
  return { type: "observation", data: { observation: { text, admissible: ["go", "stop"], ...more }, reward, done } }
}

/** The environment of shared/data/openenv/exchange.txt. */
function newSession(): (message: Message) => unknown {
  let steps = 0
  return ({ type, data }) => {
    if (type === "close") return null
    if (type === "reset") {
      steps = 0
      return observation(`start seed=${data?.seed ?? "None"}`, null, false)
    }
    if (type === "state") return { type: "state", data: { episode_id: "ep", step_count: steps } }
    if (type === "mcp") {
      const problem = { code: -32603, message: "Environment does not support MCP", data: null }
      return { type: "mcp", data: { jsonrpc: "2.0", id: data?.id, error: problem } }
    }
    if (type !== "step") return error("UNKNOWN_TYPE", `Unknown message type: ${type}`)
    const errors = validate(data ?? {})
    if (errors.length > 0) return error("VALIDATION_ERROR", "Invalid message", errors)
    steps++
    return observation(`you ${data?.command}`, data?.command === "stop" ? 1 : 0, data?.command === "stop")
  }
}

function validate(action: Record<string, unknown>): object[] {
  const known = ["command", "metadata"]
  const url = (type: string) => `https://errors.pydantic.dev/2.13/v/${type}`
  const missing = "command" in action ? [] : ["command"]
  return [
    ...missing.map((name) => ({
      type: "missing",
      loc: [name],
      msg: "Field required",
      input: action,
      url: url("missing"),
    })),
    ...Object.keys(action)
      .filter((name) => !known.includes(name))
      .map((name) => ({
        type: "extra_forbidden",
        loc: [name],
        msg: "Extra inputs are not permitted",
        input: action[name],
        url: url("extra_forbidden"),
      })),
  ]
}
