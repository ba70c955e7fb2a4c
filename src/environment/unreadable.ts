import { GigpoError } from "../util/errors.ts"

/** `BAD_DATA` error for a file that is missing or cannot be read. */
export function unreadable(path: string, cause: unknown): GigpoError {
  if (GigpoError.is(cause)) return cause
  return new GigpoError("BAD_DATA", `Cannot read ${path}: ${(cause as Error).message}.`, { cause })
}
