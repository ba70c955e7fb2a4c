import { ApiError } from "../http/api-error.ts"
import { GigpoError } from "../util/errors.ts"

export { ApiError }

/** Error with status 400 that names a field of the request. */
export function badField(param: string, what: string): ApiError {
  return new ApiError(400, `${param} ${what}.`, { param })
}

/** Error for a client. Faults of the server are reported without details. */
export function asApiError(error: unknown, client: AbortSignal): ApiError {
  if (error instanceof ApiError) return error
  if (GigpoError.is(error) && error.code === "BAD_ARGUMENT") return new ApiError(400, error.message)
  if (client.aborted) return new ApiError(499, "The client closed the connection.")
  return new ApiError(500, "Internal error of the server; see its log.")
}
