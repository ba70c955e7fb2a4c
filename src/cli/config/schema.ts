import { type JsonSchema, tableSchema } from "../../options/table-schema.ts"
import { configFields } from "./fields.ts"

/** File name of the schema that `gigpo init` writes next to a configuration. */
export const schemaFile = "config.schema.json"

/** First line of a configuration, by which editors find its schema. */
export const schemaLine: string = `# yaml-language-server: $schema=${schemaFile}`

/**
 * JSON Schema (draft 2020-12) of configuration files, made from the option tables. Editors use it to complete, explain
 * and check keys.
 */
export function configSchema(): JsonSchema {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "gigpo configuration",
    ...tableSchema(configFields),
  }
}
