import { isObject } from "../../options/read.ts"
import type { Pieces } from "../../util/pace.ts"
import { badField } from "../api-error.ts"
import type { Format } from "../call.ts"
import { FieldReader, isWellFormed } from "../fields.ts"

/** @param within - object that holds the schema in a format; undefined if the format itself holds it */
export function* readFormat(value: unknown, path: string, within: "json_schema" | undefined): Pieces<Format> {
  if (value === undefined) return { kind: "text" }
  const read = new FieldReader(value, path)
  const type = read.oneOf("type", ["text", "json_object", "json_schema"])
  if (type === undefined) throw badField(`${path}.type`, "must be text, json_object or json_schema")
  if (type !== "json_schema") {
    read.done()
    return type === "text" ? { kind: "text" } : { kind: "json", field: path }
  }
  const part = within ? new FieldReader(read.any(within), `${path}.${within}`) : read
  part.string("name")
  part.string("description")
  part.boolean("strict")
  const schema = part.any("schema")
  const field = part.name("schema")
  if (!isObject(schema)) throw badField(field, schema === undefined ? "is missing" : "must be a JSON schema")
  if (!(yield* isWellFormed(schema))) throw badField(field, "contains an unpaired surrogate; send valid Unicode")
  part.done()
  read.done()
  return { kind: "schema", schema, field }
}
