import { constants, type Stats } from "node:fs"
import { type FileHandle, lstat, open } from "node:fs/promises"
import { GigpoError } from "../util/errors.ts"
import { formatBytes } from "./format-bytes.ts"
import { ioError, isMissing, isSystemError } from "./io-error.ts"

// Windows has neither flag; there, only the check before opening applies.
const { O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY, O_RDWR } = constants

/**
 * Opens a file in a folder that gigpo manages. A pipe is rejected without blocking.
 *
 * @throws GigpoError `UNSAFE_PATH` for a link and anything else than a regular file; system errors unchanged
 */
export async function openRegular(path: string, access: "r" | "r+" = "r"): Promise<FileHandle> {
  checkRegular(path, await lstat(path))
  const flags = (access === "r" ? O_RDONLY : O_RDWR) | O_NOFOLLOW | O_NONBLOCK
  const handle = await open(path, flags).catch((cause) => {
    throw isSystemError(cause) && cause.code === "ELOOP" ? linkError(path) : cause
  })
  try {
    checkRegular(path, await handle.stat())
    return handle
  } catch (error) {
    await handle.close()
    throw error
  }
}

/**
 * Reads a file of at most `most` bytes; links are followed. Does not block on a pipe.
 *
 * @throws GigpoError `UNSAFE_PATH` for a pipe, `BAD_DATA` for a larger file; system errors unchanged
 */
export async function readLinked(path: string, most: number = Number.POSITIVE_INFINITY): Promise<string> {
  const handle = await open(path, O_RDONLY | O_NONBLOCK)
  try {
    const found = await handle.stat()
    checkRegular(path, found)
    checkSize(path, found, most)
    return await handle.readFile("utf8")
  } finally {
    await handle.close()
  }
}

/** Reads the text of a file in a folder that gigpo manages. Throws as `openRegular`. */
export async function readRegular(path: string, most?: number): Promise<string> {
  return (await readBytes(path, most)).toString("utf8")
}

/**
 * Reads at most `most` bytes of a file in a folder that gigpo manages. Throws as `openRegular`, and `BAD_DATA` for a
 * larger file.
 */
export async function readBytes(path: string, most: number = Number.POSITIVE_INFINITY): Promise<Buffer> {
  const handle = await openRegular(path)
  try {
    checkSize(path, await handle.stat(), most)
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}

/**
 * Reads the text of a file in a folder that gigpo manages; undefined if it does not exist or is a folder.
 *
 * @throws GigpoError `UNSAFE_PATH`, `IO`, `BAD_DATA` for more than `most` bytes
 */
export async function readIfThere(path: string, most?: number): Promise<string | undefined> {
  try {
    return await readRegular(path, most)
  } catch (cause) {
    if (isMissing(cause) || (isSystemError(cause) && cause.code === "EISDIR")) return undefined
    throw GigpoError.is(cause) ? cause : ioError("read", path, cause)
  }
}

function checkSize(path: string, { size }: Stats, most: number): void {
  if (size > most)
    throw new GigpoError(
      "BAD_DATA",
      `${path} has ${formatBytes(size)}; the maximum for this kind of file is ${formatBytes(most)}.`,
    )
}

function checkRegular(path: string, found: Stats): void {
  if (found.isDirectory()) throw Object.assign(new Error("EISDIR"), { code: "EISDIR", syscall: "open" })
  checkKind(path, found)
}

/** Rejects (`UNSAFE_PATH`) anything else than a regular file or a folder. */
export function checkKind(path: string, found: Stats): void {
  if (found.isSymbolicLink()) throw linkError(path)
  if (!found.isFile() && !found.isDirectory()) throw specialError(path)
}

/** State of a path, without following a link; undefined if nothing exists there. */
export async function lookAt(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path)
  } catch (cause) {
    if (isMissing(cause)) return undefined
    throw cause
  }
}

export function linkError(path: string): GigpoError {
  return new GigpoError(
    "UNSAFE_PATH",
    `${path} is a link; links are not followed in folders that gigpo manages. Replace it by a copy of the linked file or folder ` +
      "(cp -rL), or remove the link.",
  )
}

export function specialError(path: string): GigpoError {
  return new GigpoError("UNSAFE_PATH", `${path} is neither a regular file nor a folder: remove or move it.`)
}
