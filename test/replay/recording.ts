import { createReadStream } from "node:fs"
import { pipeline } from "node:stream"
import { createGunzip } from "node:zlib"
import { parseJsonLines } from "../../src/environment/json-lines.ts"

/** The records of a JSON lines file, `.gz` or plain. Throws `BAD_DATA` where it cannot be read, and with the line's number. */
export async function* readRecording(path: string): AsyncGenerator<unknown, void> {
  const file = createReadStream(path)
  // Errors of either part reach the reader of the last.
  const unpacked = path.endsWith(".gz") ? pipeline(file, createGunzip(), () => {}) : file
  for await (const { value } of parseJsonLines(unpacked, path)) yield value
}
