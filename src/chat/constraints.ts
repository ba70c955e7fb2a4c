import { Constraint } from "../engine/native/constraint.ts"
import { compileInPieces, mostInstructions } from "../grammar/compile.ts"
import { anyObject } from "../grammar/json.ts"
import { jsonSchema, jsonSchemaInPieces, longest, SchemaError, schemaText } from "../grammar/json-schema.ts"
import type { Node } from "../grammar/node.ts"
import { FairQueue } from "../http/fair-queue.ts"
import { stringify } from "../json/text.ts"
import { type ByteCodec, vocabularyPaced } from "../tokenizer/token-bytes.ts"
import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"
import { ApiError } from "./api-error.ts"
import { type Call, callable, type Format } from "./call.ts"
import { parametersOf } from "./tools/called.ts"
import type { ToolFormat } from "./tools/format.ts"

/** Maximum number of cached constraints. */
const most = 16
/** Constraints that are made at the same time, of different clients: one takes up to 50 MB while it is made. */
const making = new FairQueue(2)

/** Constraint that is being made for a client, or is made. */
interface Known {
  readonly constraint: Promise<Constraint | undefined>
  readonly client: number | undefined
  made: boolean
}

/**
 * Cache of constraints. Agents send the same tools and formats repeatedly, and an engine keeps its compiled state with
 * a constraint.
 */
export class Constraints {
  readonly #format: ToolFormat
  readonly #codec: ByteCodec
  readonly #known = new Map<string, Known>()

  constructor(format: ToolFormat, codec: ByteCodec) {
    this.#format = format
    this.#codec = codec
  }

  /**
   * Constraint of a call; undefined if any text is allowed.
   *
   * @param opening - see `ToolFormat.opening`
   * @throws ApiError that names the field which cannot be satisfied
   */
  async of(call: Call, opening: string): Promise<Constraint | undefined> {
    const key = keyOf(call, opening)
    const found = this.#known.get(key)
    // What another client waits for is behind all that this client asked for before.
    if (found && (found.made || found.client === call.client)) return await found.constraint
    // Without a signal: other calls may wait for the same constraint.
    const constraint = making.take(String(call.client ?? ""), () => this.#make(call, opening))
    const known: Known = { constraint, client: call.client, made: false }
    this.#known.set(key, known)
    constraint.then(
      () => (known.made = true),
      () => this.#known.get(key) === known && this.#known.delete(key),
    )
    const [oldest] = this.#known.keys()
    if (this.#known.size > most) this.#known.delete(oldest!)
    return await constraint
  }

  /**
   * Removes a constraint that an engine could not satisfy, with its cached state, and returns the error for the client.
   */
  async failed(call: Call, opening: string, error: GigpoError): Promise<ApiError> {
    this.#known.delete(keyOf(call, opening))
    const param = await making.take(String(call.client ?? ""), () => this.#blamed(call, error))
    return new ApiError(400, error.message, { param, code: "constraint_failed" })
  }

  async #make(call: Call, opening: string): Promise<Constraint | undefined> {
    const { tools, toolChoice, parallel, format } = call
    const pace = new Pace(undefined, call.client)
    try {
      checkLength(schemasOf(call))
      for (const { schema, name, held } of schemasOf(call))
        if (held) await pace.through(jsonSchemaInPieces(schema, name))
      const answer = answerOf(format)
      const grammar = call.raw ? answer : this.#format.grammar(tools, toolChoice, parallel, opening, answer)
      return grammar && (await this.#hold(grammar, pace))
    } catch (error) {
      if (!GigpoError.is(error) || error.code !== "BAD_ARGUMENT") throw error
      throw new ApiError(400, error.message, { param: await this.#blamed(call, error) })
    }
  }

  async #hold(grammar: Node, pace: Pace): Promise<Constraint> {
    const vocabulary = await vocabularyPaced(this.#codec, pace)
    if (!vocabulary)
      throw new GigpoError("BAD_ARGUMENT", "The model's tokenizer does not support constrained decoding.")
    return await Constraint.prepare(await pace.through(compileInPieces(grammar)), vocabulary)
  }

  /** Field whose grammar cannot be satisfied: a schema that is rejected alone, else the field that combines them. */
  async #blamed(call: Call, error: GigpoError): Promise<string> {
    const schemas = schemasOf(call)
    if (error instanceof SchemaError) {
      const refused = schemas.find(({ schema }) => schema === error.schema)
      if (refused) return refused.field
    } else {
      // Each schema is compiled alone, until their sum is too long: then no single one is the cause.
      const pace = new Pace(undefined, call.client)
      let laid = 0
      for (const { schema, field } of schemas) {
        try {
          laid += (await this.#hold(await pace.through(jsonSchemaInPieces(schema)), pace)).length
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

/** Schemas that constrain a completion, with their fields in the request. */
function schemasOf(call: Call): readonly Held[] {
  const { format, tools } = call
  const named = callable(call)
  return [
    ...(format.kind === "schema"
      ? [{ schema: format.schema as unknown, field: format.field, name: completionSchema, held: true }]
      : []),
    ...tools
      .filter(({ strict }) => strict)
      .map((tool) => ({
        ...{ schema: tool.parameters, field: tool.field, name: parametersOf(tool.name), held: named.includes(tool) },
      })),
  ]
}

interface Held {
  readonly schema: unknown
  readonly field: string
  /** Name of the schema in messages. */
  readonly name: string
  /** Whether a completion of the call can contain the described value. */
  readonly held: boolean
}

const completionSchema = "The schema of the response format"

/** Maximum characters of all schemas of a call. `jsonSchema` limits each one. */
const mostCharacters = 2 * longest

function keyOf({ tools, toolChoice, parallel, format, raw = false }: Call, opening: string): string {
  return stringify([tools, toolChoice, parallel, format, opening, raw])
}

function answerOf(format: Format): Node | undefined {
  if (format.kind === "schema") return jsonSchema(format.schema, completionSchema)
  return format.kind === "json" ? anyObject : undefined
}

function checkLength(schemas: ReturnType<typeof schemasOf>): void {
  let characters = 0
  for (const { schema } of schemas) characters += schemaText(schema).length
  if (characters > mostCharacters && schemas.length > 1)
    throw new SchemaError(
      undefined, // all of them
      `The schemas of the response format and of the strict tools have ${characters} characters in total; the maximum is ${mostCharacters}.`,
    )
}
