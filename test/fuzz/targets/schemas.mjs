// JSON schemas of tools and replies, up to the program of the grammar.
import { compile } from "../../../modules/grammar/compile.js"
import { jsonSchema } from "../../../modules/grammar/json-schema.js"
import { parseJson } from "../../../modules/json/text.js"

const schemas = [
  {
    type: "object",
    properties: {
      query: { type: "string", pattern: "^[a-z]+(-[0-9]{1,3})?$" },
      count: { type: "integer", minimum: 1, maximum: 50 },
      tags: { type: "array", items: { enum: ["a", "b", 3, null] }, minItems: 1, maxItems: 4 },
    },
    required: ["query"],
    additionalProperties: false,
  },
  {
    $ref: "#/$defs/tree",
    $defs: { tree: { type: ["object", "null"], properties: { left: { $ref: "#/$defs/tree" } } } },
  },
  { oneOf: [{ const: 3 }, { const: "x" }, { enum: [null, "y"] }] },
  { anyOf: [{ type: "boolean" }, { type: "object", properties: { x: true } }], description: "any" },
]

export async function prepare() {
  return {
    seeds: schemas.map((schema, at) => ({ name: String(at), bytes: Buffer.from(JSON.stringify(schema)) })),
    run: ({ bytes }) => {
      let schema
      try {
        schema = parseJson(bytes.toString("utf8"))
      } catch {
        return // the reader of the request refuses it
      }
      compile(jsonSchema(schema))
    },
  }
}
