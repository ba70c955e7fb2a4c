import { ApiError } from "../http/api-error.ts"
import { GigpoError } from "../util/errors.ts"

export { ApiError }

/** A 400 that names the field. */
export function badField(param: string, what: string): ApiError {
  return new ApiError(400, `${param} ${what}.`, { param })
}

/** What a client is told of any error. Faults that are not its own it hears no more of than that there was one. */
export function asApiError(error: unknown, client: AbortSignal): ApiError {
  if (error instanceof ApiError) return error
  if (GigpoError.is(error) && error.code === "BAD_ARGUMENT") return new ApiError(400, error.message)
  if (client.aborted) return new ApiError(499, "The client went away.")
  return new ApiError(500, "The model failed; see the server's log.")
}
