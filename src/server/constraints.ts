import { Constraint, type Vocabulary } from "../engine/native/constraint.ts"
import { GigpoError } from "../errors.ts"
import { anyObject } from "../grammar/json.ts"
import { jsonSchema } from "../grammar/json-schema.ts"
import type { Node } from "../grammar/node.ts"
import { ApiError } from "./api-error.ts"
import type { Call, Format } from "./call.ts"
import type { ToolFormat } from "./tools/format.ts"

/** Constraints that are remembered. */
const most = 16

/** What replies are held to: agents send the same tools and formats again and again, and an engine's work on a grammar stays with it. */
export class Constraints {
  readonly #format: ToolFormat
  readonly #codec: { vocabulary?(): Vocabulary }
  readonly #known = new Map<string, Constraint | undefined>()

  constructor(format: ToolFormat, codec: { vocabulary?(): Vocabulary }) {
    this.#format = format
    this.#codec = codec
  }

  /**
   * @param opening see `ToolFormat.opening`
   * @throws ApiError that names the field which cannot be met
   */
  of(call: Call, opening: string): Constraint | undefined {
    const key = keyOf(call, opening)
    if (this.#known.has(key)) return this.#known.get(key)
    const constraint = this.#make(call, opening)
    this.#known.set(key, constraint)
    const [oldest] = this.#known.keys()
    if (this.#known.size > most) this.#known.delete(oldest!)
    return constraint
  }

  /** What an engine could not hold a reply to is made anew for the next: what was walked of it goes with it. */
  failed(call: Call, opening: string, error: GigpoError): ApiError {
    this.#known.delete(keyOf(call, opening))
    return new ApiError(400, error.message, { param: this.#blamed(call), code: "constraint_failed" })
  }

  #make(call: Call, opening: string): Constraint | undefined {
    const { tools, toolChoice, parallel, format } = call
    try {
      const grammar = this.#format.grammar(tools, toolChoice, parallel, opening, answerOf(format))
      return grammar && this.#hold(grammar)
    } catch (error) {
      if (!GigpoError.is(error) || error.code !== "BAD_ARGUMENT") throw error
      throw new ApiError(400, error.message, { param: this.#blamed(call) })
    }
  }

  #hold(grammar: Node): Constraint {
    if (!this.#codec.vocabulary)
      throw new GigpoError("BAD_ARGUMENT", "This model's tokenizer cannot be held to a grammar.")
    return new Constraint(grammar, this.#codec.vocabulary())
  }

  /** The field whose grammar cannot be met: a schema that is refused by itself, else what they are put together by. */
  #blamed({ format, tools, toolChoice }: Call): string {
    const refused = (schema: unknown) => {
      try {
        this.#hold(jsonSchema(schema))
        return false
      } catch {
        return true
      }
    }
    if (format.kind === "schema" && refused(format.schema)) return format.field
    const tool = tools.find(({ strict, parameters }) => strict && refused(parameters))
    if (tool) return tool.field
    return format.kind !== "text" ? format.field : toolChoice === "auto" ? "tools" : "tool_choice"
  }
}

function keyOf({ tools, toolChoice, parallel, format }: Call, opening: string): string {
  return JSON.stringify([tools, toolChoice, parallel, format, opening])
}

function answerOf(format: Format): Node | undefined {
  if (format.kind === "schema") return jsonSchema(format.schema, "The schema of the reply")
  return format.kind === "json" ? anyObject : undefined
}
