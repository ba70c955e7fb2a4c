import { Pace } from "../../util/pace.ts"

/** Approximate size of a piece in characters. */
const large = 65_536
/** Number of numbers and strings that are written at once. */
const several = 512
/** Depth to which objects and lists are split; deeper ones are small. */
const deepest = 6
/** Weight up to which an object or list is written at once: its numbers, and a part of the lengths of its texts. */
const light = 2048
/** Characters that weigh as much as a number. */
const charactersOfNumber = 32

/** Writes a value as JSON in pieces, so that a large one does not block the event loop. */
export async function* jsonPieces(value: unknown): AsyncGenerator<string> {
  const pace = new Pace()
  let piece = ""
  for (const part of parts(value, 0)) {
    piece += part
    if (pace.due()) await pace.rest()
    if (piece.length < large) continue
    yield piece
    piece = ""
  }
  yield piece
}

function* parts(value: unknown, depth: number): Generator<string> {
  if (typeof value !== "object" || value === null || depth === deepest || isLight(value))
    yield JSON.stringify(value) ?? "null"
  else if (Array.isArray(value)) yield* listParts(value, depth)
  else {
    let before = "{"
    for (const [key, inner] of Object.entries(value)) {
      if (inner === undefined) continue
      yield `${before}${JSON.stringify(key)}:`
      yield* parts(inner, depth + 1)
      before = ","
    }
    yield before === "{" ? "{}" : "}"
  }
}

/** Whether a value takes little time to write. The time to find out is limited by `light`, whatever the size of the value. */
function isLight(value: object): boolean {
  let left = light
  const weigh = (one: unknown): void => {
    left--
    if (typeof one === "string") left -= one.length / charactersOfNumber
    else if (typeof one === "object" && one !== null)
      for (const key in one) {
        if (left < 0) return
        weigh((one as Record<string, unknown>)[key])
      }
  }
  weigh(value)
  return left >= 0
}

function* listParts(list: readonly unknown[], depth: number): Generator<string> {
  yield "["
  if (typeof list[0] === "object" && list[0] !== null) {
    for (const [at, inner] of list.entries()) {
      if (at > 0) yield ","
      yield* parts(inner, depth + 1)
    }
  } else {
    for (let from = 0; from < list.length; from += several)
      yield `${from > 0 ? "," : ""}${JSON.stringify(list.slice(from, from + several)).slice(1, -1)}`
  }
  yield "]"
}
