import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"
import { JinjaError } from "./jinja/errors.ts"
import { type Moment, parseMoment, wallClock } from "./jinja/strftime.ts"
import { JinjaTemplate } from "./jinja/template.ts"

export interface ChatTemplateLimits {
  /** Longest that one render may take, in ms. Default 250. */
  readonly timeoutMs?: number
  /** Longest text that one render may give, in UTF-16 units. Default 1 048 576. */
  readonly maxLength?: number
}

export interface RenderOptions {
  /**
   * What `strftime_now` formats: local time without a zone, e.g. "2026-11-25T14:20:04". Default: the time at which the
   * template was made.
   */
  readonly now?: string | undefined
}

/**
 * A Jinja chat template, rendered as transformers renders it in Python. It may come from strangers: it sees nothing
 * but its variables, and each render has a limit of time and of size.
 */
export class ChatTemplate {
  readonly source: string
  readonly #name: string
  readonly #timeoutMs: number
  readonly #maxLength: number
  readonly #made = wallClock(new Date())
  #template: JinjaTemplate | undefined
  #disposed = false

  /** `name` is the file that error messages blame. */
  constructor(source: string, name: string, limits: ChatTemplateLimits = {}) {
    this.source = source
    this.#name = name
    this.#timeoutMs = limits.timeoutMs ?? 250
    this.#maxLength = limits.maxLength ?? 2 ** 20
  }

  /** Fails with BAD_TOKENIZER where the template is not Jinja, or names what is not supported. */
  async parse(): Promise<void> {
    this.#parsed()
  }

  /**
   * The text that the template makes of these variables, which are plain data with RawJson in it. Fails with
   * TEMPLATE_TIMEOUT where it takes too long, with BAD_TOKENIZER where it fails or its text is too long, and with
   * BAD_ARGUMENT for variables that are not data. The template stays usable.
   */
  async render(variables: Readonly<Record<string, unknown>>, options: RenderOptions = {}): Promise<string> {
    const template = this.#parsed()
    const now = moment(options.now ?? this.#made)
    const limits = { timeoutMs: this.#timeoutMs, maxLength: this.#maxLength }
    try {
      return await new Pace().through(template.renderInPieces(variables, now, limits))
    } catch (error) {
      throw this.#asError(error)
    }
  }

  /** Later use fails with DISPOSED. */
  async dispose(): Promise<void> {
    this.#disposed = true
    this.#template = undefined
  }

  #parsed(): JinjaTemplate {
    if (this.#disposed) throw new GigpoError("DISPOSED", `the tokenizer of ${this.#name} was used after dispose()`)
    try {
      this.#template ??= new JinjaTemplate(this.source)
    } catch (error) {
      throw this.#asError(error)
    }
    return this.#template
  }

  /** An error of the template, with its name. */
  #asError(cause: unknown): unknown {
    if (!(cause instanceof JinjaError)) return cause
    if (cause.kind === "TimeoutError") return this.#timeoutError()
    const reason = cause.message.slice(0, 500)
    const message = `the chat template of ${this.#name} failed: ${reason}. Use messages that it takes, or another template`
    return new GigpoError("BAD_TOKENIZER", message, { cause })
  }

  #timeoutError(): GigpoError {
    const message = `the chat template of ${this.#name} ran longer than ${this.#timeoutMs} ms: use another template or raise timeoutMs`
    return new GigpoError("TEMPLATE_TIMEOUT", message)
  }
}

function moment(now: string): Moment {
  const parsed = parseMoment(now)
  if (parsed !== undefined) return parsed
  throw new GigpoError("BAD_ARGUMENT", `now is "${now}": give a local time such as "2026-11-25T14:20:04"`)
}
