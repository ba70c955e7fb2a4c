import { randomUUID } from "node:crypto"
import { GigpoError } from "../../util/errors.ts"
import { Connection, type ConnectionOptions } from "./connection.ts"
import { Futures, type Pending } from "./futures.ts"

/** Milliseconds between signs of life; servers end sessions that are silent for minutes. */
const heartbeat = 10_000
/** What this client speaks. */
const sdkVersion = "0.38.0"

/** A client's time with a server. */
export interface Session {
  readonly connection: Connection
  readonly futures: Futures
  readonly id: string
  /** What the server said of itself. */
  readonly flags: Readonly<Record<string, unknown>>
  /** Requests that are under way. */
  readonly pending: readonly Pending[]
  /** A POST whose answer is JSON; `again` as in `Connection.send`. */
  post(path: string, body: object, again?: boolean): Promise<Readonly<Record<string, unknown>>>
  close(): Promise<void>
}

/** Whether it is `gigpo engine`, which says so and can do more than the API asks for. */
export const isOurs = ({ flags }: Pick<Session, "flags">): boolean =>
  typeof flags.gigpo === "object" && flags.gigpo !== null

export interface SessionOptions extends ConnectionOptions {
  /** Seconds that a request which was taken may take. Default 3600. */
  readonly deadline?: number | undefined
}

/** @throws GigpoError `ENGINE_LOST` where nobody answers, `ENGINE_REFUSED` where it is no server of the API, or the key is wrong. */
export async function openSession(options: SessionOptions): Promise<Session> {
  const connection = new Connection(options)
  const futures = new Futures(connection, options.deadline ?? 3600)
  const post = async (path: string, body: object, again = true) => {
    const idempotent = { "x-idempotency-key": randomUUID() }
    const { body: answer } = await connection.send({ path, body, headers: idempotent }, again)
    return (answer ?? {}) as Readonly<Record<string, unknown>>
  }
  const flags = await post("/client/config", { sdk_version: sdkVersion })
  const { session_id, ...told } = await post("/create_session", {
    ...{ tags: [], user_metadata: {}, sdk_version: sdkVersion, type: "create_session" },
  })
  if (typeof session_id !== "string")
    throw new GigpoError("ENGINE_REFUSED", `What answers at ${connection.url} is no server of the Tinker API.`)
  connection.met()
  for (const message of [told.info_message, told.warning_message, told.error_message])
    if (typeof message === "string" && message) connection.onWarning(`The engine says: ${message}`)
  let ended = false
  const beat = setInterval(() => {
    const sign = { path: "/session_heartbeat", body: { session_id, type: "session_heartbeat" }, within: heartbeat }
    void connection.attempt(sign).then((outcome) => {
      if (outcome.kind !== "refused" || outcome.status !== 410 || ended) return
      clearInterval(beat)
      connection.onWarning("The engine has ended this session; what is saved there stays.")
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
