import { compactJson, memberTexts, stringify } from "../../json/text.ts"
import { GigpoError } from "../../util/errors.ts"
import type { Observation } from "../environment.ts"
import { asObject } from "./frames.ts"
import type { ResolvedOptions } from "./options.ts"

/** Usual names of the field with the text of an observation, most specific first. */
const textFields = ["text", "prompt", "message", "question", "content", "observation", "output", "result", "response"]
const actionsFields = ["admissible", "admissible_commands", "available_actions", "legal_actions", "actions"]

/** Converts the server's observation. Throws `BAD_CONFIG` if it has no field of a name that an option gives. */
export function readObservation(observation: unknown, options: ResolvedOptions): Observation {
  if (options.observe) {
    const { text, anchor = text, actions } = options.observe(observation)
    return { text, anchor, ...(actions && { actions }) }
  }
  const fields = asObject(observation)
  const named = (option: "textField" | "anchorField" | "actionsField"): unknown => {
    const name = options[option]
    if (name === undefined) return undefined
    // The original text of a number is kept by its object, not by the number.
    if (typeof fields[name] === "number") return memberTexts(stringify(fields)).get(name)
    if (Object.hasOwn(fields, name)) return fields[name]
    const known = Object.keys(fields).join(", ")
    throw new GigpoError("BAD_CONFIG", `openenv: ${option} is "${name}", but the observation has the fields ${known}.`)
  }
  const text = asText(named("textField") ?? textFields.map((name) => fields[name]).find(isText) ?? observation)
  const anchor = asText(named("anchorField") ?? text)
  const actions = named("actionsField") ?? actionsFields.map((name) => fields[name]).find(isList)
  return { text, anchor, ...(isList(actions) && { actions }) }
}

/** Text of a value, with numbers and the order of keys as the server wrote them. */
function asText(value: unknown): string {
  return typeof value === "string" ? value : compactJson(stringify(value) ?? "")
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== ""
}

function isList(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every(isText)
}
