import { randomUUID } from "node:crypto"
import { GigpoError } from "../../util/errors.ts"
import { Connection, type ConnectionOptions } from "./connection.ts"
import { Futures, type PendingRequest } from "./futures.ts"

/** Milliseconds between heartbeats. Servers end sessions that are silent for minutes. */
const heartbeat = 10_000
/** Version of the API's SDK that this client is compatible with. */
const sdkVersion = "0.38.0"

/** Session of a client on a server. */
export interface Session {
  readonly connection: Connection
  readonly futures: Futures
  readonly id: string
  /** Flags that the server reports about itself. */
  readonly flags: Readonly<Record<string, unknown>>
  /** Requests that are accepted but not answered. */
  readonly pending: readonly PendingRequest[]
  /** Sends a POST request with a JSON response; `again` as in `Connection.send`. */
  post(path: string, body: object, again?: boolean): Promise<Readonly<Record<string, unknown>>>
  close(): Promise<void>
}

/** Whether the server is `gigpo engine`, which has more features than the API requires. */
export const isOurs = ({ flags }: Pick<Session, "flags">): boolean =>
  typeof flags.gigpo === "object" && flags.gigpo !== null

export interface SessionOptions extends ConnectionOptions {
  /** Timeout in seconds for completing an accepted request. Default 3600. */
  readonly resultTimeout?: number | undefined
}

/** Opens a session. Throws `ENGINE_LOST` if no server answers, and `ENGINE_REJECTED` for another kind of server or a wrong key. */
export async function openSession(options: SessionOptions): Promise<Session> {
  const connection = new Connection(options)
  const futures = new Futures(connection, options.resultTimeout ?? 3600)
  const post = async (path: string, body: object, again = true) => {
    const idempotent = { "x-idempotency-key": randomUUID() }
    const { body: answer } = await connection.send({ path, body, headers: idempotent }, again)
    return (answer ?? {}) as Readonly<Record<string, unknown>>
  }
  const flags = await post("/client/config", { sdk_version: sdkVersion })
  const { session_id, ...messages } = await post("/create_session", {
    ...{ tags: [], user_metadata: {}, sdk_version: sdkVersion, type: "create_session" },
  })
  if (typeof session_id !== "string")
    throw new GigpoError(
      "ENGINE_REJECTED",
      `The server at ${connection.url} is not a server of the Tinker API. Correct the address.`,
    )
  connection.met()
  for (const message of [messages.info_message, messages.warning_message, messages.error_message])
    if (typeof message === "string" && message) connection.onWarning(`Message of the engine: ${message}`)
  let ended = false
  const beat = setInterval(() => {
    const sign = { path: "/session_heartbeat", body: { session_id, type: "session_heartbeat" }, within: heartbeat }
    void connection.attempt(sign).then((outcome) => {
      if (outcome.kind !== "refused" || outcome.status !== 410 || ended) return
      clearInterval(beat)
      connection.onWarning("The engine has ended this session; weights saved there are kept.")
    })
  }, heartbeat)
  beat.unref()
  return {
    ...{ connection, futures, id: session_id, flags, post },
    get pending() {
      return futures.pending
    },
    close: async () => {
      ended = true
      clearInterval(beat)
      const finish = { reason: { type: "success" } }
      await connection.attempt({ path: `/sessions/${session_id}/finish`, body: finish, within: 5000 })
    },
  }
}
