import { memberTextsInPieces, parseJsonInPieces, stringify } from "../../json/text.ts"
import { isObject } from "../../options/read.ts"
import type { Pieces } from "../../util/pace.ts"
import { badField } from "../api-error.ts"
import type { Tool, ToolChoice } from "../call.ts"
import { FieldReader, isWellFormed } from "../fields.ts"
import { mostTools } from "../json-limits.ts"

type Values = Readonly<Record<string, unknown>>

/** Tools of Chat Completions: each function in an object with a type. */
export function readTools(values: readonly unknown[] = []): Pieces<readonly Tool[]> {
  return distinct(values, readTool)
}

/** Tools of the Responses API: functions without a nested object. */
export function readFlatTools(values: readonly unknown[] = []): Pieces<readonly Tool[]> {
  return distinct(values, function* (value, path) {
    const read = new FieldReader(value, path)
    checkType(read)
    const tool = yield* readFunction(read, path)
    const members = yield* memberTextsInPieces(stringify(withoutNulls(value as Values)))
    const texts = [...members].filter(([key]) => key !== "type")
    const called = yield* parseJsonInPieces(
      `{${texts.map(([key, text]) => `${JSON.stringify(key)}: ${text}`).join(", ")}}`,
    )
    return { ...tool, definition: { type: "function", function: called as object } }
  })
}

/** Tool of the Messages API; a deferred one is not described in the prompt until a result refers to it. */
export interface InputTool extends Tool {
  readonly deferred: boolean
}

/** Tools of the Messages API: functions without a nested object, whose parameters are an `input_schema`. */
export function readInputTools(values: readonly unknown[] = []): Pieces<readonly InputTool[]> {
  return distinct(values, function* (value, path) {
    const read = new FieldReader(value, path)
    read.oneOf("type", ["custom"])
    read.ignore("cache_control", "eager_input_streaming")
    const deferred = read.boolean("defer_loading") ?? false
    const tool = yield* readFunction(read, path, "input_schema")
    const { name, description, parameters, strict } = tool
    const called = { name, ...(description !== undefined && { description }), parameters, ...(strict && { strict }) }
    return { ...tool, deferred, definition: { type: "function", function: called } }
  })
}

function* readTool(value: unknown, path: string): Pieces<Tool> {
  const read = new FieldReader(value, path)
  checkType(read)
  const called = read.any("function")
  const tool = yield* readFunction(new FieldReader(called, `${path}.function`), `${path}.function`)
  read.done()
  const whole = withoutNulls(called as Values)
  return { ...tool, definition: whole === called ? (value as object) : { ...(value as object), function: whole } }
}

function few(values: readonly unknown[], field = "tools"): readonly unknown[] {
  if (values.length > mostTools) throw badField(field, `has ${values.length} tools; send at most ${mostTools}`)
  return values
}

function checkType(read: FieldReader): void {
  if (read.any("type") !== "function")
    throw badField(read.name("type"), "must be function: other tools are not supported")
}

function* readFunction(read: FieldReader, path: string, within = "parameters"): Pieces<Omit<Tool, "definition">> {
  const name = read.required("name")
  if (!/^[\w.-]{1,128}$/.test(name)) throw badField(`${path}.name`, "must consist of letters, digits, _, - and .")
  const description = read.string("description")
  const field = `${path}.${within}`
  const parameters = read.any(within) ?? { type: "object", properties: {} }
  if (!isObject(parameters)) throw badField(field, "must be a JSON schema")
  if (parameters.type !== undefined && parameters.type !== "object")
    throw badField(`${field}.type`, "must be object: arguments are named")
  if (!(yield* isWellFormed(parameters))) throw badField(field, "contains an unpaired surrogate; send valid Unicode")
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

/** Reads tools. Rejects duplicate names: a call identifies its tool by name. */
function* distinct<T extends Tool>(
  values: readonly unknown[],
  read: (value: unknown, path: string) => Pieces<T>,
): Pieces<readonly T[]> {
  const tools: T[] = []
  const places = new Map<string, number>()
  for (const [index, value] of few(values).entries()) {
    const tool = yield* read(value, `tools[${index}]`)
    const { name, field } = tool
    const first = places.get(name)
    if (first !== undefined)
      throw badField(field.replace(/\w+$/, "name"), `is ${JSON.stringify(name)}, the same as that of tools[${first}]`)
    places.set(name, index)
    tools.push(tool)
    yield
  }
  return tools
}

/** @param within - object that names the function in a choice; undefined if the choice itself does */
export function readToolChoice(value: unknown, tools: readonly Tool[], within: "function" | undefined): ToolChoice {
  if (value === undefined) return "auto"
  if (value === "auto" || value === "none") return value
  checkNamed("required", tools)
  if (value === "required") return value
  if (!isObject(value)) throw badField("tool_choice", wantedChoice)
  if (value.type === "allowed_tools") return readAllowed(value, tools, within)
  return { name: readName(value, "tool_choice", tools, within) }
}

const wantedChoice = "must be auto, none, required, name a function, or list allowed_tools"

/** Choice among some of the tools. The Responses API has no object for it within the choice. */
function readAllowed(value: Values, tools: readonly Tool[], within: "function" | undefined): ToolChoice {
  const read = new FieldReader(value, "tool_choice")
  read.ignore("type")
  const inner = within ? new FieldReader(read.any("allowed_tools"), "tool_choice.allowed_tools") : read
  const mode = inner.oneOf("mode", ["auto", "required"]) ?? "auto"
  const field = inner.name("tools")
  const named = inner.list("tools") ?? []
  if (named.length === 0) throw badField(field, "must list at least one tool")
  const names = few(named, field).map((one, index) => readName(one, `${field}[${index}]`, tools, within))
  inner.done()
  read.done()
  return { mode, names }
}

/** Name of a tool in a choice. */
function readName(value: unknown, path: string, tools: readonly Tool[], within: "function" | undefined): string {
  const read = new FieldReader(value, path)
  if (read.any("type") !== "function") throw badField(path, wantedChoice)
  const named = within ? new FieldReader(read.any(within), read.name(within)) : read
  const name = named.required("name")
  named.done()
  read.done()
  checkName(name, path, tools)
  return name
}

function checkName(name: string, path: string, tools: readonly Tool[]): void {
  if (!tools.some((tool) => tool.name === name))
    throw badField(path, `names ${JSON.stringify(name)}, which is not in tools`)
}

/** Checks that there are tools for a choice that requires one. */
export function checkNamed(choice: ToolChoice, tools: readonly Tool[]): void {
  if (choice === "auto" || choice === "none") return
  if (tools.length === 0) throw badField("tool_choice", "requires a tool, but the request has no tools")
  if (typeof choice === "object" && "name" in choice) checkName(choice.name, "tool_choice", tools)
}
