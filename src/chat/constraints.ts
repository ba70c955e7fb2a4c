import { Constraint, type Vocabulary } from "../engine/native/constraint.ts"
import { compileInPieces, mostInstructions } from "../grammar/compile.ts"
import { anyObject } from "../grammar/json.ts"
import { jsonSchema, jsonSchemaInPieces, longest, SchemaError, schemaText } from "../grammar/json-schema.ts"
import type { Node } from "../grammar/node.ts"
import { stringify } from "../json/text.ts"
import { GigpoError } from "../util/errors.ts"
import { Pace, type Pieces } from "../util/pace.ts"
import { ApiError } from "./api-error.ts"
import type { Call, Format } from "./call.ts"
import { parametersOf } from "./tools/called.ts"
import type { ToolFormat } from "./tools/format.ts"

/** Constraints that are remembered. */
const most = 16

/** What replies are held to: agents send the same tools and formats again and again, and an engine's work on a grammar stays with it. */
export class Constraints {
  readonly #format: ToolFormat
  readonly #codec: { vocabulary?(): Vocabulary }
  readonly #known = new Map<string, Promise<Constraint | undefined>>()

  constructor(format: ToolFormat, codec: { vocabulary?(): Vocabulary }) {
    this.#format = format
    this.#codec = codec
  }

  /**
   * @param opening see `ToolFormat.opening`
   * @throws ApiError that names the field which cannot be met
   */
  async of(call: Call, opening: string): Promise<Constraint | undefined> {
    const key = keyOf(call, opening)
    const known = this.#known.get(key)
    if (known) return await known
    // Without a signal: other calls may wait for the same.
    const constraint = new Pace().through(this.#make(call, opening))
    this.#known.set(key, constraint)
    constraint.catch(() => this.#known.delete(key))
    const [oldest] = this.#known.keys()
    if (this.#known.size > most) this.#known.delete(oldest!)
    return await constraint
  }

  /** What an engine could not hold a reply to is made anew for the next: what was walked of it goes with it. */
  async failed(call: Call, opening: string, error: GigpoError): Promise<ApiError> {
    this.#known.delete(keyOf(call, opening))
    const param = await new Pace().through(this.#blamed(call, error))
    return new ApiError(400, error.message, { param, code: "constraint_failed" })
  }

  *#make(call: Call, opening: string): Pieces<Constraint | undefined> {
    const { tools, toolChoice, parallel, format } = call
    try {
      checkLength(schemasOf(call))
      for (const { schema, name, held } of schemasOf(call)) if (held) yield* jsonSchemaInPieces(schema, name)
      const grammar = this.#format.grammar(tools, toolChoice, parallel, opening, answerOf(format))
      return grammar && (yield* this.#hold(grammar))
    } catch (error) {
      if (!GigpoError.is(error) || error.code !== "BAD_ARGUMENT") throw error
      throw new ApiError(400, error.message, { param: yield* this.#blamed(call, error) })
    }
  }

  *#hold(grammar: Node): Pieces<Constraint> {
    if (!this.#codec.vocabulary)
      throw new GigpoError("BAD_ARGUMENT", "This model's tokenizer cannot be held to a grammar.")
    return new Constraint(yield* compileInPieces(grammar), this.#codec.vocabulary())
  }

  /** The field whose grammar cannot be met: a schema that is refused alone, else what they are put together by. */
  *#blamed(call: Call, error: GigpoError): Pieces<string> {
    const schemas = schemasOf(call)
    if (error instanceof SchemaError) {
      const refused = schemas.find(({ schema }) => schema === error.schema)
      if (refused) return refused.field
    } else {
      // Each is compiled alone, until they are too long together: then no single one is at fault.
      let laid = 0
      for (const { schema, field } of schemas) {
        try {
          laid += (yield* this.#hold(yield* jsonSchemaInPieces(schema))).length
        } catch {
          return field
        }
        if (laid > mostInstructions) break
      }
    }
    const { format, toolChoice } = call
    return format.kind !== "text" ? format.field : toolChoice === "auto" ? "tools" : "tool_choice"
  }
}

/** The schemas that a reply is held to, with the fields of the request that have them. */
function schemasOf({ format, tools, toolChoice }: Call): readonly Held[] {
  const isHeld = (name: string) => toolChoice !== "none" && (typeof toolChoice !== "object" || toolChoice.name === name)
  return [
    ...(format.kind === "schema"
      ? [{ schema: format.schema as unknown, field: format.field, name: replySchema, held: true }]
      : []),
    ...tools
      .filter(({ strict }) => strict)
      .map(({ name, parameters, field }) => ({
        ...{ schema: parameters, field, name: parametersOf(name), held: isHeld(name) },
      })),
  ]
}

interface Held {
  readonly schema: unknown
  readonly field: string
  /** What messages call the schema. */
  readonly name: string
  /** Whether a reply to the call can have what the schema describes. */
  readonly held: boolean
}

const replySchema = "The schema of the reply"

/** Characters of all schemas of a call. Each alone is limited by `jsonSchema`. */
const mostCharacters = 2 * longest

function keyOf({ tools, toolChoice, parallel, format }: Call, opening: string): string {
  return stringify([tools, toolChoice, parallel, format, opening])
}

function answerOf(format: Format): Node | undefined {
  if (format.kind === "schema") return jsonSchema(format.schema, replySchema)
  return format.kind === "json" ? anyObject : undefined
}

function checkLength(schemas: ReturnType<typeof schemasOf>): void {
  let characters = 0
  for (const { schema } of schemas) characters += schemaText(schema).length
  if (characters > mostCharacters && schemas.length > 1)
    throw new SchemaError(
      undefined, // all of them
      `The schemas of the reply and of the strict tools have ${characters} characters together; give at most ${mostCharacters}.`,
    )
}
