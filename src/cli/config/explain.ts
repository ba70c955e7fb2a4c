import type { z } from "zod"
import { configKeys } from "./keys.ts"
import { nearestKey } from "./nearest.ts"

type Issue = z.core.$ZodIssue

/** One thing that is wrong with a configuration: where, and a sentence that begins with the key. */
export interface Complaint {
  readonly path: readonly PropertyKey[]
  readonly text: string
}

/** Says what the schema found, in the words of the file. */
export function explainIssue(issue: Issue, value: unknown): Complaint[] {
  if (issue.code === "unrecognized_keys") return issue.keys.map((key) => unknownKey([...issue.path, key]))
  const found = valueAt(value, issue.path)
  const name = issue.path.join(".") || "the file"
  const wanted = expectation(issue)
  if (found === undefined) return [{ path: issue.path, text: `${name} is missing. ${describe(issue.path)}`.trimEnd() }]
  return [{ path: issue.path, text: `${name} ${wanted}, not ${show(found)}.` }]
}

function unknownKey(path: readonly PropertyKey[]): Complaint {
  const name = path.join(".")
  const paths = configKeys.map((key) => key.path)
  const meant = nearestKey(path.map(String), paths)
  if (meant) return { path, text: `${name}: did you mean ${meant.join(".")}?` }
  const group = path.slice(0, -1).join(".")
  const siblings = paths.filter((key) => key.slice(0, -1).join(".") === group).map((key) => key.at(-1))
  return { path, text: `${name} is not known; ${group || "the file"} may hold ${siblings.join(", ")}.` }
}

function expectation(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return `must be ${kinds[issue.expected] ?? issue.expected}`
    case "too_small":
      return issue.origin === "string"
        ? "must not be empty"
        : `must be ${issue.inclusive ? "at least" : "above"} ${issue.minimum}`
    case "too_big":
      return `must be ${issue.inclusive ? "at most" : "below"} ${issue.maximum}`
    case "invalid_value":
      return `must be ${issue.values.map((one) => JSON.stringify(one)).join(" or ")}`
    default:
      return issue.message
  }
}

const kinds: Readonly<Record<string, string>> = {
  int: "a whole number",
  number: "a number",
  string: "a text",
  boolean: "true or false",
  object: "a group of keys",
}

function describe(path: readonly PropertyKey[]): string {
  return configKeys.find((key) => key.path.join(".") === path.join("."))?.description ?? ""
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let found = value
  for (const key of path) found = (found as Record<PropertyKey, unknown> | null | undefined)?.[key]
  return found
}

function show(value: unknown): string {
  if (value === null) return "empty"
  if (typeof value === "number") return String(value)
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}
