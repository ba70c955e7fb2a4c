/** Python's class of a template's error. It decides what a filter or a lookup may recover from. */
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

/** Failure of a template: its own, with Jinja2's reason, or of the limits it runs under. */
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

/** Refuses by name what Jinja2 has and this implementation does not. */
export function unsupported(what: string): never {
  throw new JinjaError("NotSupported", `${what} is not supported in chat templates here`)
}

export function isKind(error: unknown, ...kinds: readonly ErrorKind[]): boolean {
  return error instanceof JinjaError && kinds.includes(error.kind)
}
