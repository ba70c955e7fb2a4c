/** Rejection of a request, in the format of OpenAI's API. */
export class ApiError extends Error {
  override readonly name = "ApiError"
  /** HTTP status. */
  readonly status: number
  readonly type: "invalid_request_error" | "authentication_error" | "not_found_error" | "server_error"
  /** Field that caused the error. */
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
