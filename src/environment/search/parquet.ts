import { type ChildProcess, spawn } from "node:child_process"
import { on } from "node:events"
import { stat } from "node:fs/promises"
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"
import { GigpoError } from "../../util/errors.ts"
import { unreadable } from "../unreadable.ts"
import { type ParquetMessage, type ParquetRequest, parquetSource } from "./parquet-process.ts"

// Limits of a file: a constant, and an amount per byte of the file. A question with its answers has tens of bytes, compressed.

/** Limit of values and rows of the columns that are read. */
const [usualValues, mostValues] = [2 ** 16, 64]
/** Limit of decompressed bytes of these columns. */
const [usualBytes, mostBytes] = [16 * 2 ** 20, 64]
/** Limit of the memory of the process in bytes. */
const [usualMemory, mostMemory] = [256 * 2 ** 20, 64]
/** Time limit in milliseconds: a constant, and an amount per MiB. */
const [usualTime, mostTime] = [60_000, 2000]

/**
 * Reads the rows of a Parquet file as plain objects, with those of the wanted columns that the file has. A separate process reads the file,
 * so that a broken or hostile file cannot take the time or memory of this one.
 *
 * @throws BAD_DATA if the file cannot be read or is not a valid Parquet file; the signal's reason
 */
export async function* readParquetRows(
  path: string,
  wanted: readonly string[],
  signal?: AbortSignal,
): AsyncGenerator<unknown, void, undefined> {
  const found = await stat(path).catch((cause: Error) => {
    throw unreadable(path, cause)
  })
  if (!found.isFile()) throw broken(path, "it is not a file")
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
      const result = message as ParquetMessage
      if ("rows" in result) yield* result.rows
      else if ("problem" in result) throw broken(path, result.problem)
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
  return new GigpoError("BAD_DATA", `${path} cannot be read as Parquet (${reason}); download or write it again.`, {
    cause,
  })
}
