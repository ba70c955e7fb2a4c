import buffer from "node:buffer" // as a whole: Node 16 has no isUtf8, and is to be told which Node is needed
import { createReadStream } from "node:fs"
import { readJson } from "../json/depth.ts"
import { GigpoError } from "../util/errors.ts"
import { unreadable } from "./unreadable.ts"

/** One line of a file. */
export interface Line {
  /** Counts from 1. */
  readonly number: number
  /** Where it starts in the file, and its length without the line break; in bytes. */
  readonly start: number
  readonly length: number
  readonly value: unknown
}

/** No sane line is longer; a file without line breaks must not fill the memory. */
const longestLine = 64 * 2 ** 20

/**
 * The lines of a JSON Lines file as it is read, blank ones left out; files may be larger than the memory.
 *
 * @param parse `parseJson` where values are written again
 * @throws BAD_DATA where the file cannot be read, and with the line's number where a line is no JSON
 */
export function readJsonLines(
  path: string,
  signal?: AbortSignal,
  parse: (text: string) => unknown = JSON.parse,
): AsyncGenerator<Line, void, undefined> {
  const chunks = createReadStream(path, { highWaterMark: 2 ** 18, ...(signal && { signal }) })
  return parseJsonLines(chunks, path, signal, parse)
}

/** The same of a file's bytes, however they are come by. */
export async function* parseJsonLines(
  chunks: AsyncIterable<Buffer>,
  path: string,
  signal?: AbortSignal,
  parse: (text: string) => unknown = JSON.parse,
): AsyncGenerator<Line, void, undefined> {
  let rest: Buffer[] = []
  let waiting = 0 // bytes in `rest`
  let start = 0
  let number = 0
  const parsed = (text: string): unknown => {
    try {
      return readJson(text, parse)
    } catch (cause) {
      throw bad(path, number, `is not JSON (${(cause as Error).message})`, cause)
    }
  }
  const line = (bytes: Buffer): Line | undefined => {
    number++
    const at = start
    start += bytes.length + 1
    if (!buffer.isUtf8(bytes)) throw bad(path, number, "is not UTF-8")
    const text = decodeLine(bytes)
    return text.trim() === "" ? undefined : { number, start: at, length: bytes.length, value: parsed(text) }
  }
  try {
    for await (const chunk of chunks) {
      let from = 0
      for (let to = chunk.indexOf(10); to >= 0; to = chunk.indexOf(10, from)) {
        const found = line(
          rest.length > 0 ? Buffer.concat([...rest, chunk.subarray(from, to)]) : chunk.subarray(from, to),
        )
        from = to + 1
        rest = []
        waiting = 0
        if (found) yield found
      }
      if (from < chunk.length) rest.push(chunk.subarray(from))
      waiting += chunk.length - from
      if (waiting > longestLine) throw bad(path, number + 1, `is longer than ${longestLine / 2 ** 20} MiB`)
    }
    const last = waiting > 0 ? line(Buffer.concat(rest)) : undefined
    if (last) yield last
  } catch (cause) {
    signal?.throwIfAborted()
    if (GigpoError.is(cause)) throw cause
    throw unreadable(path, cause)
  }
}

/** The text of a line; a file may begin with a byte order mark. */
export function decodeLine(bytes: Buffer): string {
  return bytes.toString("utf8").replace(/^\ufeff/, "")
}

function bad(path: string, number: number, problem: string, cause?: unknown): GigpoError {
  return new GigpoError("BAD_DATA", `${path}, line ${number} ${problem}; a JSON Lines file has one object a line.`, {
    cause,
  })
}
