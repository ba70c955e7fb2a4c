import { ApiError } from "../chat/api-error.ts"
import { systemReason } from "../files/io-error.ts"
import { GigpoError, type GigpoErrorCode } from "../util/errors.ts"

/** Codes of errors whose messages are safe for clients. Messages of other errors may name files of the server. */
const ofRequest: ReadonlySet<GigpoErrorCode> = new Set([
  ...(["BAD_ARGUMENT", "CONSTRAINT_FAILED", "NON_FINITE", "POLICY_BUSY", "ENGINE_REJECTED"] as const),
  ...(["OUT_OF_MEMORY", "DEVICE_UNAVAILABLE", "DEVICE_LOST", "DISPOSED", "ABORTED"] as const),
])

/** Failure of a request, as reported to its client. */
export interface ReportedFailure {
  readonly error: string
  readonly category: "user" | "server"
  /** Whether the message omits details, so that the error should be written to the server's log. */
  readonly log: boolean
}

/** Returns the report of a failed request for its client, without paths of the server. */
export function reportedFailure(error: unknown): ReportedFailure {
  if (error instanceof ApiError) return { error: error.message, category: "user", log: false }
  if (!GigpoError.is(error))
    return { error: "The engine failed. The server's log has the cause.", category: "server", log: true }
  if (ofRequest.has(error.code)) return { error: error.message, category: "user", log: false }
  const reason = systemReason(error.cause)
  const why = reason === undefined ? "" : `: ${reason}`
  return {
    error: `The engine cannot use its files${why}. The server's log names the file.`,
    category: "user",
    log: true,
  }
}
