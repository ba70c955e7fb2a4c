import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"
import { JinjaError } from "./jinja/errors.ts"
import { type Moment, parseMoment, wallClock } from "./jinja/strftime.ts"
import type { JinjaTemplate } from "./jinja/template.ts"

/** Limits of a chat template. */
export interface ChatTemplateLimits {
  /** Time limit of a render in milliseconds. Default 250. */
  readonly timeoutMs?: number
  /** Maximum length of a rendered text in UTF-16 units. Default 1 048 576. */
  readonly maxLength?: number
}

/** Options of `ChatTemplate.render`. */
export interface RenderOptions {
  /**
   * Time for `strftime_now`: local time without zone, e.g. "2026-11-25T14:20:04". Default: the time at which the template was constructed.
   */
  readonly now?: string | undefined
}

/**
 * Jinja chat template, rendered as in transformers. Templates may be untrusted: they only have access to their variables, and renders are
 * limited in time and size.
 */
export class ChatTemplate {
  readonly source: string
  readonly #name: string
  readonly #timeoutMs: number
  readonly #maxLength: number
  readonly #made = wallClock(new Date())
  #template: JinjaTemplate | undefined
  #disposed = false

  /** `name` is the file, for error messages. */
  constructor(source: string, name: string, limits: ChatTemplateLimits = {}) {
    this.source = source
    this.#name = name
    this.#timeoutMs = limits.timeoutMs ?? 250
    this.#maxLength = limits.maxLength ?? 2 ** 20
  }

  /** Parses the template. Throws BAD_TOKENIZER if it is not valid Jinja or uses unsupported features. */
  async parse(): Promise<void> {
    await this.#parsed()
  }

  /**
   * Renders the template with variables, which are plain data and RawJson. The template can be used again after an error.
   *
   * @throws TEMPLATE_TIMEOUT if it takes too long, BAD_TOKENIZER if it fails or the text is too long, BAD_ARGUMENT for variables that are not
   * plain data
   */
  async render(variables: Readonly<Record<string, unknown>>, options: RenderOptions = {}): Promise<string> {
    const template = await this.#parsed()
    const now = moment(options.now ?? this.#made)
    const limits = { timeoutMs: this.#timeoutMs, maxLength: this.#maxLength }
    try {
      return await new Pace().through(template.renderInPieces(variables, now, limits))
    } catch (error) {
      throw this.#asError(error)
    }
  }

  /** Releases the template; later use throws DISPOSED. */
  async dispose(): Promise<void> {
    this.#disposed = true
    this.#template = undefined
  }

  async #parsed(): Promise<JinjaTemplate> {
    const { JinjaTemplate } = await import("./jinja/template.ts")
    if (this.#disposed) throw new GigpoError("DISPOSED", `the tokenizer of ${this.#name} was used after dispose()`)
    try {
      this.#template ??= new JinjaTemplate(this.source)
    } catch (error) {
      throw this.#asError(error)
    }
    return this.#template
  }

  /** Error of the template as a `GigpoError` with the template's name. */
  #asError(cause: unknown): unknown {
    if (!(cause instanceof JinjaError)) return cause
    if (cause.kind === "TimeoutError") return this.#timeoutError()
    const reason = cause.message.slice(0, 500)
    const message = `the chat template of ${this.#name} failed: ${reason}. Use messages that it supports, or another template`
    return new GigpoError("BAD_TOKENIZER", message, { cause })
  }

  #timeoutError(): GigpoError {
    const message = `the chat template of ${this.#name} ran longer than ${this.#timeoutMs} ms: use another template or increase timeoutMs`
    return new GigpoError("TEMPLATE_TIMEOUT", message)
  }
}

function moment(now: string): Moment {
  const parsed = parseMoment(now)
  if (parsed !== undefined) return parsed
  throw new GigpoError("BAD_ARGUMENT", `now is "${now}": give a local time such as "2026-11-25T14:20:04"`)
}
