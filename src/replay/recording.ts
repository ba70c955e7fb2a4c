import { createReadStream } from "node:fs"
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"
import { createGunzip } from "node:zlib"
import { GigpoError } from "../errors.ts"

/** The records of a JSON lines file, `.gz` or plain. Throws `IO` where it cannot be read, `BAD_DATA` with the line's number. */
export async function* readRecording(path: string): AsyncGenerator<unknown, void> {
  const file = createReadStream(path)
  const unpacked: Readable = path.endsWith(".gz") ? file.pipe(createGunzip()) : file
  file.on("error", (error) => unpacked.destroy(error))
  let number = 0
  try {
    for await (const line of createInterface({ input: unpacked, crlfDelay: Number.POSITIVE_INFINITY })) {
      number++
      if (line.trim() === "") continue
      yield parse(line, `${path}, line ${number}`)
    }
  } catch (cause) {
    if (GigpoError.is(cause)) throw cause
    throw new GigpoError("IO", `Cannot read the recording ${path}: ${(cause as Error).message}.`, { cause })
  }
}

function parse(line: string, where: string): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    throw new GigpoError("BAD_DATA", `${where}: not JSON (${(cause as Error).message}).`, { cause })
  }
}
