import { parseJson } from "../../json/text.ts"

/** What the server answers. Frames of other types are never asked for. */
export type Frame = ObservationFrame | ErrorFrame

/** The answer to a reset or a step. */
export interface ObservationFrame {
  readonly type: "observation"
  readonly observation: unknown
  /** null and booleans have become numbers. */
  readonly reward: number
  readonly done: boolean
}

export interface ErrorFrame {
  readonly type: "error"
  readonly code: string
  readonly message: string
  /** Pydantic's list, where the message was not of the right form: `type` says what is wrong, `loc` where. */
  readonly errors: readonly { readonly type: string; readonly loc: string }[]
}

/** Reads one frame; a text that is none gives the reason. */
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
  if (typeof done !== "boolean") return "done is neither true nor false"
  const value = Number(reward ?? 0)
  if (!["number", "boolean", "undefined"].includes(typeof reward) && reward !== null) return "the reward is no number"
  return { type: "observation", observation, reward: value, done }
}

function readError({ code, message, errors }: Record<string, unknown>): Frame {
  const list = Array.isArray(errors) ? errors.map(asObject) : []
  return {
    type: "error",
    code: String(code ?? "without a code"),
    message: String(message ?? ""),
    errors: list.map(({ type, loc }) => ({
      type: String(type),
      loc: Array.isArray(loc) ? loc.join(".") : String(loc),
    })),
  }
}

/** The value itself where it is an object, else one without fields. */
export function asObject(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {}
}
