import { parseJson } from "../../json/text.ts"

/** Response of the server. Frames of other types are never requested. */
export type Frame = ObservationFrame | ErrorFrame

/** Response to a reset or a step. */
export interface ObservationFrame {
  readonly type: "observation"
  readonly observation: unknown
  /** null and booleans are converted to numbers. */
  readonly reward: number
  readonly done: boolean
}

export interface ErrorFrame {
  readonly type: "error"
  readonly code: string
  readonly message: string
  /** Pydantic's list of validation errors: `type` is the kind of error, `loc` its place in the message. */
  readonly errors: readonly { readonly type: string; readonly loc: string }[]
}

/** Parses a frame; returns the reason as a string if the text is not a valid frame. */
export function readFrame(text: string): Frame | string {
  let frame: unknown
  try {
    frame = parseJson(text)
  } catch {
    return "it is not JSON"
  }
  const { type, data } = asObject(frame)
  if (typeof data !== "object" || data === null) return "it has no data"
  if (type === "observation") return readObservation(asObject(data))
  if (type === "error") return readError(asObject(data))
  return `its type is ${JSON.stringify(type) ?? "missing"}`
}

function readObservation({ observation, reward, done }: Record<string, unknown>): Frame | string {
  if (observation === undefined) return "it has no observation"
  if (typeof done !== "boolean") return "done is not a boolean"
  const value = Number(reward ?? 0)
  if (!["number", "boolean", "undefined"].includes(typeof reward) && reward !== null)
    return "the reward is not a number"
  return { type: "observation", observation, reward: value, done }
}

function readError({ code, message, errors }: Record<string, unknown>): Frame {
  const list = Array.isArray(errors) ? errors.map(asObject) : []
  return {
    type: "error",
    code: asText(code ?? "without a code"),
    message: asText(message ?? ""),
    errors: list.map(({ type, loc }) => ({
      type: asText(type),
      loc: Array.isArray(loc) ? loc.map(asText).join(".") : asText(loc),
    })),
  }
}

/** A text as it is, any other value as JSON: `String` throws for an object with a field "toString". */
function asText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "undefined")
}

/** The value if it is an object, else an empty object. */
export function asObject(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {}
}
