import { type ChildProcess, spawn } from "node:child_process"
import { on } from "node:events"
import { stat } from "node:fs/promises"
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"
import { GigpoError } from "../../util/errors.ts"
import { unreadable } from "../unreadable.ts"
import { type ParquetMessage, type ParquetRequest, parquetSource } from "./parquet-process.ts"

// What a file may take, however small it is, and for each of its bytes. A question with its answers has tens of bytes, compressed.

/** Values and rows of the columns that are read. */
const [usualValues, mostValues] = [2 ** 16, 64]
/** Bytes of these columns, decompressed. */
const [usualBytes, mostBytes] = [16 * 2 ** 20, 64]
/** Bytes of memory of the process that reads. */
const [usualMemory, mostMemory] = [256 * 2 ** 20, 64]
/** Milliseconds, and for each megabyte. */
const [usualTime, mostTime] = [60_000, 2000]

/**
 * The rows of a Parquet file as plain objects, with those of the named columns that the file has. A process of its own reads them, so
 * that a broken or hostile file takes neither this one's time nor its memory.
 *
 * @throws BAD_DATA where the file cannot be read, and where it is no Parquet file or a broken one; the signal's reason
 */
export async function* readParquetRows(
  path: string,
  wanted: readonly string[],
  signal?: AbortSignal,
): AsyncGenerator<unknown, void, undefined> {
  const found = await stat(path).catch((cause: Error) => {
    throw unreadable(path, cause)
  })
  if (!found.isFile()) throw broken(path, "it is no file")
  const { size } = found
  const child = start({
    path,
    wanted,
    library: urlOf("hyparquet"),
    pages: urlOf("hyparquet/src/column.js"),
    mostValues: usualValues + mostValues * size,
    mostBytes: usualBytes + mostBytes * size,
    mostMemory: usualMemory + mostMemory * size,
  })
  const clock = setTimeout(() => child.kill("SIGKILL"), usualTime + (mostTime * size) / 2 ** 20)
  try {
    for await (const [message] of on(child, "message", { close: ["disconnect"], ...(signal && { signal }) })) {
      const told = message as ParquetMessage
      if ("rows" in told) yield* told.rows
      else if ("problem" in told) throw broken(path, told.problem)
      else return
    }
    throw broken(path, "reading it takes more memory or time than its size allows")
  } catch (cause) {
    signal?.throwIfAborted()
    throw GigpoError.is(cause) ? cause : broken(path, (cause as Error).message, cause)
  } finally {
    clearTimeout(clock)
    child.kill("SIGKILL")
  }
}

function start(request: ParquetRequest): ChildProcess {
  const megabytes = Math.ceil(request.mostMemory / 2 ** 20)
  const args = [`--max-old-space-size=${megabytes}`, "-e", parquetSource, JSON.stringify(request)]
  return spawn(process.execPath, args, {
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    serialization: "advanced",
    env: {},
  })
}

const require = createRequire(import.meta.url)

function urlOf(name: string): string {
  return pathToFileURL(require.resolve(name)).href
}

function broken(path: string, reason: string, cause?: unknown): GigpoError {
  return new GigpoError("BAD_DATA", `${path} cannot be read as Parquet (${reason}); download or write it anew.`, {
    cause,
  })
}
