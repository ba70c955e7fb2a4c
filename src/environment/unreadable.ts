import { GigpoError } from "../errors.ts"

/** `BAD_DATA` for data that is not there or cannot be read: whoever named its path mends it. */
export function unreadable(path: string, cause: unknown): GigpoError {
  return new GigpoError("BAD_DATA", `Cannot read ${path}: ${(cause as Error).message}.`, { cause })
}
