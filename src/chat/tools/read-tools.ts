import { memberTexts, parseJson, stringify } from "../../json/text.ts"
import { isObject } from "../../options/read.ts"
import { badField } from "../api-error.ts"
import type { Tool, ToolChoice } from "../call.ts"
import { FieldReader, isWellFormed } from "../fields.ts"
import { mostTools } from "../json-limits.ts"

type Values = Readonly<Record<string, unknown>>

/** Tools of Chat Completions: each function in an object with a type. */
export function readTools(values: readonly unknown[] = []): readonly Tool[] {
  return distinct(few(values).map((value, index) => readTool(value, `tools[${index}]`)))
}

/** Tools of the Responses API: functions without a nested object. */
export function readFlatTools(values: readonly unknown[] = []): readonly Tool[] {
  return distinct(
    few(values).map((value, index) => {
      const path = `tools[${index}]`
      const read = new FieldReader(value, path)
      checkType(read)
      const members = [...memberTexts(stringify(withoutNulls(value as Values)))].filter(([key]) => key !== "type")
      const called = parseJson(`{${members.map(([key, text]) => `${JSON.stringify(key)}: ${text}`).join(", ")}}`)
      return { ...readFunction(read, path), told: { type: "function", function: called as object } }
    }),
  )
}

function readTool(value: unknown, path: string): Tool {
  const read = new FieldReader(value, path)
  checkType(read)
  const called = read.any("function")
  const tool = readFunction(new FieldReader(called, `${path}.function`), `${path}.function`)
  read.done()
  const whole = withoutNulls(called as Values)
  return { ...tool, told: whole === called ? (value as object) : { ...(value as object), function: whole } }
}

function few(values: readonly unknown[]): readonly unknown[] {
  if (values.length > mostTools) throw badField("tools", `has ${values.length} tools; send at most ${mostTools}`)
  return values
}

function checkType(read: FieldReader): void {
  if (read.any("type") !== "function")
    throw badField(read.name("type"), "must be function: other tools are not supported")
}

function readFunction(read: FieldReader, path: string): Omit<Tool, "told"> {
  const name = read.required("name")
  if (!/^[\w.-]{1,128}$/.test(name)) throw badField(`${path}.name`, "must consist of letters, digits, _, - and .")
  const description = read.string("description")
  const field = `${path}.parameters`
  const parameters = read.any("parameters") ?? { type: "object", properties: {} }
  if (!isObject(parameters)) throw badField(field, "must be a JSON schema")
  if (parameters.type !== undefined && parameters.type !== "object")
    throw badField(`${field}.type`, "must be object: arguments are named")
  if (!isWellFormed(parameters)) throw badField(field, "contains an unpaired surrogate; send valid Unicode")
  const strict = read.boolean("strict") ?? false
  read.ignore("type", "return") // the result, as in Hugging Face's schemas
  read.done()
  return { name, parameters, strict, field, ...(description !== undefined && { description }) }
}

/** Object without null members; the same object if there are none. */
function withoutNulls(value: Values): Values {
  if (!Object.values(value).includes(null)) return value
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null))
}

/** Refuses duplicate names: a call identifies its tool by name. */
function distinct(tools: readonly Tool[]): readonly Tool[] {
  const places = new Map<string, number>()
  for (const [index, { name, field }] of tools.entries()) {
    const first = places.get(name)
    if (first !== undefined)
      throw badField(
        field.replace(/parameters$/, "name"),
        `is ${JSON.stringify(name)}, the same as that of tools[${first}]`,
      )
    places.set(name, index)
  }
  return tools
}

/** @param within - object that names the function in a choice; undefined if the choice itself does */
export function readToolChoice(value: unknown, tools: readonly Tool[], within: "function" | undefined): ToolChoice {
  if (value === undefined) return "auto"
  if (value === "auto" || value === "none") return value
  if (tools.length === 0) throw badField("tool_choice", "requires a tool, but the request has no tools")
  if (value === "required") return value
  if (!isObject(value) || value.type !== "function")
    throw badField("tool_choice", "must be auto, none, required, or name a function")
  const read = new FieldReader(value, "tool_choice")
  read.ignore("type")
  const named = within ? new FieldReader(read.any(within), `tool_choice.${within}`) : read
  const name = named.required("name")
  named.done()
  read.done()
  if (!tools.some((tool) => tool.name === name))
    throw badField("tool_choice", `names ${JSON.stringify(name)}, which is not in tools`)
  return { name }
}
