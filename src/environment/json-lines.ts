import buffer from "node:buffer" // default import: Node 16 has no isUtf8, and must get as far as the check of its version
import { createReadStream } from "node:fs"
import { readJson } from "../json/depth.ts"
import { GigpoError } from "../util/errors.ts"
import { unreadable } from "./unreadable.ts"

/** Line of a JSON Lines file. */
export interface Line {
  /** Line number, from 1. */
  readonly number: number
  /** Offset of the line in the file, in bytes. */
  readonly start: number
  /** Length without the line break, in bytes. */
  readonly length: number
  readonly value: unknown
}

/** Maximum length of a line in bytes, so that a file without line breaks does not fill the memory. */
const longestLine = 64 * 2 ** 20

/**
 * Reads the lines of a JSON Lines file one by one and skips blank lines. The file may be larger than the memory.
 *
 * @param parse - `parseJson` if values are written again
 * @throws BAD_DATA if the file cannot be read or a line is not JSON; the message gives the line number
 */
export function readJsonLines(
  path: string,
  signal?: AbortSignal,
  parse: (text: string) => unknown = JSON.parse,
): AsyncGenerator<Line, void, undefined> {
  const chunks = createReadStream(path, { highWaterMark: 2 ** 18, ...(signal && { signal }) })
  return parseJsonLines(chunks, path, signal, parse)
}

/** Parses the lines of a JSON Lines file from its bytes. See `readJsonLines`; `path` is for messages. */
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

/** Text of a line, without the byte order mark that a file may begin with. */
export function decodeLine(bytes: Buffer): string {
  return bytes.toString("utf8").replace(/^\ufeff/, "")
}

function bad(path: string, number: number, problem: string, cause?: unknown): GigpoError {
  return new GigpoError("BAD_DATA", `${path}, line ${number} ${problem}; a JSON Lines file has one object per line.`, {
    cause,
  })
}
