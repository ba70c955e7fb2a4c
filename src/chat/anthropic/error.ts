import type { ApiError } from "../api-error.ts"

const types: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  503: "overloaded_error",
}

/** Error in the format of Anthropic's API: https://docs.anthropic.com/en/api/errors */
export function anthropicError({ status, message }: ApiError): object {
  const type = types[status] ?? (status < 500 ? "invalid_request_error" : "api_error")
  return { type: "error", error: { type, message } }
}
