import { lstat } from "node:fs/promises"
import { GigpoError } from "../util/errors.ts"

const reasons = new Map([
  ["ENOSPC", "the disk is full; free some space and try again"],
  ["EDQUOT", "the disk quota is used up; free some space and try again"],
  ["EACCES", "permission denied; check who owns the file and its folder"],
  ["EPERM", "permission denied; check who owns the file and its folder"],
  ["EROFS", "the file system is read-only; choose another folder"],
  ["EEXIST", "it is already there; choose another name or remove it first"],
  ["ENOTEMPTY", "it is already there; choose another name or remove it first"],
  ["ENOENT", "it does not exist; check the path"],
  ["ENOTDIR", "a part of the path is a file, not a folder; check the path"],
  ["EISDIR", "it is a folder, not a file; check the path"],
  ["EMFILE", "too many files are open; raise the limit (ulimit -n)"],
  ["EIO", "the disk reported a fault; check its health"],
])

/** Whether a value is an error of the operating system, as Node.js throws it. */
export function isSystemError(value: unknown): value is NodeJS.ErrnoException & { code: string } {
  return value instanceof Error && "syscall" in value && "code" in value && typeof value.code === "string"
}

/** Whether an error means that a path does not exist. */
export function isMissing(value: unknown): boolean {
  return isSystemError(value) && (value.code === "ENOENT" || value.code === "ENOTDIR")
}

/** Whether a file, a folder or a link exists. */
export async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (cause) {
    if (isMissing(cause)) return false
    throw ioError("look at", path, cause)
  }
}

/** Reason of a system error in words; undefined for other errors and unknown codes. */
export function systemReason(cause: unknown): string | undefined {
  return isSystemError(cause) ? reasons.get(cause.code) : undefined
}

/** `IO` error with the system's reason in words: `Could not write /models/x: the disk is full; …`. */
export function ioError(doing: string, path: string, cause: unknown): GigpoError {
  const reason = systemReason(cause) ?? (cause instanceof Error ? cause.message : String(cause))
  return new GigpoError("IO", `Could not ${doing} ${path}: ${reason}.`, { cause })
}

/** Awaits work and turns system errors into `IO`. Other errors stay unchanged. */
export async function translated<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw isSystemError(cause) ? ioError("write", path, cause) : cause
  }
}

/** Awaits a file operation and turns its failure into `IO`; errors of this package stay unchanged. */
export async function io<T>(doing: string, path: string, operation: Promise<T>): Promise<T> {
  try {
    return await operation
  } catch (cause) {
    throw GigpoError.is(cause) ? cause : ioError(doing, path, cause)
  }
}
