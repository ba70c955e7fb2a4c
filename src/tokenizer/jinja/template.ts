import { atOnce, type Pieces } from "../../util/pace.ts"
import { compileTemplate, type Program } from "./compile.ts"
import { JinjaError } from "./errors.ts"
import { globals } from "./globals.ts"
import { type RenderLimits, underLimits } from "./limits.ts"
import { plainValue } from "./plain-value.ts"
import type { Moment } from "./strftime.ts"

/**
 * Jinja2 template in the configuration of transformers: sandboxed and immutable, with trim_blocks, lstrip_blocks, loop controls,
 * `{% generation %}`, and the names raise_exception, strftime_now and tojson. Throws a JinjaError for invalid or unsupported sources.
 */
export class JinjaTemplate {
  readonly #program: Program

  constructor(source: string) {
    try {
      this.#program = compileTemplate(source)
    } catch (error) {
      throw asJinjaError(error)
    }
  }

  /** Renders the template. Variables are plain data; RawJson in them is parsed as by Python's json.loads. */
  render(variables: Readonly<Record<string, unknown>>, now: Moment, limits: RenderLimits): string {
    return atOnce(this.renderInPieces(variables, now, limits))
  }

  /** Renders the template with a pause after each iteration of a loop. */
  *renderInPieces(variables: Readonly<Record<string, unknown>>, now: Moment, limits: RenderLimits): Pieces<string> {
    try {
      return yield* underLimits(limits, this.#run(variables, now))
    } catch (error) {
      throw asJinjaError(error)
    }
  }

  *#run(variables: Readonly<Record<string, unknown>>, now: Moment): Pieces<string> {
    const context = new Map(globals(now))
    for (const [name, value] of Object.entries(variables)) {
      if (value !== undefined) context.set(name, yield* plainValue(value))
    }
    return yield* this.#program(context)
  }
}

/** Converts a stack overflow, which corresponds to Python's recursion limit, to a JinjaError. */
function asJinjaError(error: unknown): unknown {
  if (!(error instanceof RangeError)) return error
  return new JinjaError("OverflowError", "it is nested too deeply or recurses too often")
}
