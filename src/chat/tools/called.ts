import { anyObject, colon, comma, constant } from "../../grammar/json.ts"
import { jsonSchema } from "../../grammar/json-schema.ts"
import { choice, type Node, repeat, rule, sequence, text } from "../../grammar/node.ts"
import { parseJson, stringify } from "../../json/text.ts"
import { isObject } from "../../options/read.ts"
import { callable, type Tool, type ToolChoice } from "../call.ts"
import { mostNesting } from "../json-limits.ts"
import type { Piece } from "./format.ts"

/** Format of tool calls: key of the arguments, delimiters around each call, and separator. */
interface Writing {
  readonly key: "arguments" | "parameters"
  readonly around?: readonly [before: string, behind: string]
  readonly between: string
}

/** Constraint of tool calls for a request. */
export interface Calling {
  /** Grammar of one or several calls; undefined if no tool may be called. */
  readonly calls: Node | undefined
  /** Whether the completion must consist of calls. */
  readonly must: boolean
  /** Whether calls are constrained beyond their format. */
  readonly held: boolean
}

/** Name of a tool's parameters in messages. */
export function parametersOf(name: string): string {
  return `The parameters of ${name}`
}

/** @throws GigpoError `BAD_ARGUMENT`, here or when the calls are compiled, for unsupported parameter schemas */
export function calling(
  tools: readonly Tool[],
  toolChoice: ToolChoice,
  parallel: boolean,
  { key, around: [before, behind] = ["", ""], between }: Writing,
): Calling {
  const single = typeof toolChoice === "object" && "name" in toolChoice
  const allowed = typeof toolChoice === "object" && "names" in toolChoice ? toolChoice : undefined
  const named = callable({ tools, toolChoice })
  const callOf = ({ name, parameters, strict }: Tool): Node => {
    const given = strict ? jsonSchema(parameters, parametersOf(name)) : anyObject
    const object = [text('{"name"'), colon, constant(name), comma, text(`"${key}"`), colon, given, text("}")]
    return sequence(text(before), ...object, text(behind))
  }
  const called = rule(() => choice(named.map(callOf)))
  const more = parallel && !single ? Number.POSITIVE_INFINITY : 0
  const must = single || (allowed?.mode ?? toolChoice) === "required"
  return {
    calls: named.length > 0 || must ? sequence(called, repeat(sequence(text(between), called), 0, more)) : undefined,
    must,
    held: must || !parallel || allowed !== undefined || named.some(({ strict }) => strict),
  }
}

/**
 * Parses a call written as a JSON object with a name and, under `key`, its arguments; undefined for other text.
 * Arguments keep their sampled spelling.
 *
 * @param only - names of the tools; a call of another one, or with further members, is other text. Default: any name
 */
export function readCalled(
  text: string,
  key: Writing["key"],
  only?: readonly string[],
): Extract<Piece, { kind: "call" }> | undefined {
  try {
    const value = parseJson(text, mostNesting)
    if (!isObject(value) || typeof value.name !== "string" || value.name === "") return undefined
    if (only && !(only.includes(value.name) && Object.keys(value).join() === `name,${key}`)) return undefined
    const given = value[key] ?? {}
    return isObject(given) ? { kind: "call", name: value.name, arguments: stringify(given) } : undefined
  } catch {
    return undefined
  }
}
