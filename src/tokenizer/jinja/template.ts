import { atOnce, type Pieces } from "../../util/pace.ts"
import { compileTemplate, type Program } from "./compile.ts"
import { JinjaError } from "./errors.ts"
import { globals } from "./globals.ts"
import { type RenderLimits, underLimits } from "./limits.ts"
import { plainValue } from "./plain-value.ts"
import type { Moment } from "./strftime.ts"

/**
 * A Jinja2 template as transformers configures it: sandboxed and immutable, with trim_blocks, lstrip_blocks, loop
 * controls, `{% generation %}`, and the names raise_exception, strftime_now and tojson. Fails with a JinjaError where
 * the source is not Jinja2, and by name where it needs what is not supported.
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

  /** The text for variables, which are plain data. RawJson in them is read as Python's json.loads reads it. */
  render(variables: Readonly<Record<string, unknown>>, now: Moment, limits: RenderLimits): string {
    return atOnce(this.renderInPieces(variables, now, limits))
  }

  /** The same with a pause after each round of a loop. */
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

/** JavaScript's stack ends where Python has its recursion limit. */
function asJinjaError(error: unknown): unknown {
  if (!(error instanceof RangeError)) return error
  return new JinjaError("OverflowError", "it is nested too deep or calls itself too often")
}
