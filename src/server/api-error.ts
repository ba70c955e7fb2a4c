import { GigpoError } from "../errors.ts"

/** What a client is told of a request that cannot be answered, in the form that OpenAI's API gives it. */
export class ApiError extends Error {
  override readonly name = "ApiError"
  readonly status: number
  readonly type: "invalid_request_error" | "authentication_error" | "not_found_error" | "server_error"
  /** The field that is to blame. */
  readonly param: string | undefined
  readonly code: string | undefined

  constructor(status: number, message: string, { param, code }: { param?: string; code?: string } = {}) {
    super(message)
    this.status = status
    this.type =
      status === 401 || status === 403
        ? "authentication_error"
        : status === 404
          ? "not_found_error"
          : status < 500
            ? "invalid_request_error"
            : "server_error"
    this.param = param
    this.code = code
  }

  toJSON(): object {
    const { message, type, param = null, code = null } = this
    return { error: { message, type, param, code } }
  }
}

/** A 400 that names the field. */
export function badField(param: string, what: string): ApiError {
  return new ApiError(400, `${param} ${what}.`, { param })
}

/** What a client is told of any error. Faults that are not its own it hears no more of than that there was one. */
export function asApiError(error: unknown, client: AbortSignal): ApiError {
  if (error instanceof ApiError) return error
  if (GigpoError.is(error) && error.code === "BAD_ARGUMENT") return new ApiError(400, error.message)
  if (client.aborted) return new ApiError(499, "The client went away.")
  return new ApiError(500, "The model failed. What happened stands in the server's log.")
}
