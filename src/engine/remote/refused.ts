import { GigpoError } from "../../util/errors.ts"

/** Response of the server, as the cause of an error. */
interface ServerResponse {
  readonly status: number
}

/** Returns the error for a rejected request. */
export function refused(path: string, status: number, reason: string): GigpoError {
  const serverResponse: ServerResponse = { status }
  return new GigpoError("ENGINE_REJECTED", `The engine rejected ${path} (${status}): ${reason}`, {
    cause: serverResponse,
  })
}

/** Returns the first 500 characters of a server's message, for error messages. */
export function excerpt(content: unknown): string {
  const text = typeof content === "string" ? content : written(content)
  return text.slice(0, 500).trim()
}

function written(content: unknown): string {
  try {
    return JSON.stringify(content) ?? ""
  } catch {
    return "it is nested too deep" // JSON.parse accepts deeper nesting than JSON.stringify
  }
}

/** Returns the error for an unsupported operation, with an alternative. */
export const cannot = (what: string, instead: string) =>
  new GigpoError("ENGINE_REJECTED", `This engine cannot ${what}: ${instead}.`)

/** Whether a request was rejected because of the key or its format, before it was processed. */
export function isUnread(error: unknown): boolean {
  return (
    GigpoError.is(error) &&
    [401, 403, 404, 405, 413, 415].includes((error.cause as ServerResponse | undefined)?.status ?? 0)
  )
}

/** Error for a request that the server may have accepted and that must not be repeated. */
export class MaybeTaken extends GigpoError {
  constructor(url: string, path: string, reason: string) {
    super(
      "ENGINE_LOST",
      `The engine at ${url} may or may not have accepted ${path} (${reason}), and would execute a repeated request twice. ` +
        "Resume from the last checkpoint.",
    )
  }
}

/** Returns the result of a call; undefined if the server rejects. */
export async function unlessRefused<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call()
  } catch (error) {
    if (GigpoError.is(error) && error.code === "ENGINE_REJECTED") return undefined
    throw error
  }
}

/** Decodes a response. Throws `ENGINE_LOST` for a malformed one. */
export function understood<T>(path: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new GigpoError(
      "ENGINE_LOST",
      `The engine's response to ${path} is not a valid result of the API: ${reason} Resume from the last checkpoint.`,
      { cause },
    )
  }
}
