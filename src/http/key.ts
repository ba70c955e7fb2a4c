import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import { GigpoError } from "../util/errors.ts"

/** New key of 256 random bits. */
export function newKey(): string {
  return `gigpo-${randomBytes(32).toString("base64url")}`
}

/** Whether two keys are equal, in a time that does not depend on how much of them is. */
export function isKey(given: string, key: string): boolean {
  return timingSafeEqual(digest(given), digest(key))
}

/** Text that stands for a key in a table, so that looking it up takes the same time for every key. */
export function keyDigest(key: string): string {
  return digest(key).toString("base64url")
}

/** Key of a request: `Authorization: Bearer …`, or the header `x-api-key`; empty where there is none. */
export function keyOf(header: (name: string) => string | null | undefined): string {
  return /^Bearer (.+)$/i.exec(header("authorization") ?? "")?.[1]?.trim() ?? header("x-api-key") ?? ""
}

/**
 * Key that a server's environment variable sets; undefined where it is not set. Keys are not options of commands, since every user of a
 * machine sees the words of a command.
 *
 * @throws GigpoError `BAD_ARGUMENT` for a key that is too short, has blanks or does not begin with `prefix`
 */
export function keyFromEnvironment(variable: string, prefix = ""): string | undefined {
  const given = process.env[variable]
  if (given === undefined || (given.startsWith(prefix) && /^[\x21-\x7e]{16,}$/.test(given))) return given
  const begin = prefix && ` that begins with ${prefix}`
  throw new GigpoError(
    "BAD_ARGUMENT",
    `${variable} must be a key of at least 16 characters without blanks${begin}; unset it, and one is made.`,
  )
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest()
}
