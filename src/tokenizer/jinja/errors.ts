/** Python class of a template error, which determines whether a filter or lookup can recover. */
export type ErrorKind =
  | "AssertionError"
  | "AttributeError"
  | "IndexError"
  | "KeyError"
  | "NotSupported"
  | "OverflowError"
  | "SecurityError"
  | "TemplateError"
  | "TemplateSyntaxError"
  | "TimeoutError"
  | "TypeError"
  | "UndefinedError"
  | "ValueError"
  | "ZeroDivisionError"

/** Error of a template, with the message of Jinja2, or of its limits. */
export class JinjaError extends Error {
  readonly kind: ErrorKind

  constructor(kind: ErrorKind, message: string) {
    super(message)
    this.kind = kind
  }
}

export function fail(kind: ErrorKind, message: string): never {
  throw new JinjaError(kind, message)
}

/** Fails for a feature of Jinja2 that is not supported. */
export function unsupported(what: string): never {
  throw new JinjaError("NotSupported", `${what} is not supported in chat templates`)
}

export function isKind(error: unknown, ...kinds: readonly ErrorKind[]): boolean {
  return error instanceof JinjaError && kinds.includes(error.kind)
}
