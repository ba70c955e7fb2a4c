import { type JsonSchema, tableSchema } from "../../options/table-schema.ts"
import { configFields } from "./fields.ts"

/** Name of the schema beside a configuration that `gigpo init` writes. */
export const schemaFile = "config.schema.json"

/** First line of a configuration, by which editors find its schema. */
export const schemaLine: string = `# yaml-language-server: $schema=${schemaFile}`

/** JSON Schema (draft 2020-12) of configuration files, from the tables of options: editors complete, explain and check keys by it. */
export function configSchema(): JsonSchema {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "gigpo configuration",
    ...tableSchema(configFields),
  }
}
