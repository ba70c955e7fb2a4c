import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import { GigpoError } from "../util/errors.ts"

/** New key of 256 random bits. */
export function newKey(): string {
  return `gigpo-${randomBytes(32).toString("base64url")}`
}

/** Whether two keys are equal, in constant time. */
export function isKey(given: string, key: string): boolean {
  return timingSafeEqual(digest(given), digest(key))
}

/** Digest of a key for tables, so that a lookup takes the same time for every key. */
export function keyDigest(key: string): string {
  return digest(key).toString("base64url")
}

/**
 * Key of a request: `Authorization: Bearer …`, or the header `x-api-key`, or the cookie with a given name; empty if
 * absent.
 */
export function keyOf(header: (name: string) => string | null | undefined, cookie?: string): string {
  const bearer = /^Bearer (.+)$/i.exec(header("authorization") ?? "")?.[1]?.trim()
  return bearer ?? header("x-api-key") ?? (cookie && cookieOf(header("cookie") ?? "", cookie)) ?? ""
}

function cookieOf(header: string, name: string): string | undefined {
  const found = header.split("; ").find((one) => one.startsWith(`${name}=`))
  return found?.slice(name.length + 1)
}

/**
 * Key from a server's environment variable; undefined if not set. Keys are not command-line options, since these are
 * visible to every user of a machine.
 *
 * @throws GigpoError `BAD_ARGUMENT` for a key that is too short, has blanks or does not start with `prefix`
 */
export function keyFromEnvironment(variable: string, prefix = ""): string | undefined {
  const given = process.env[variable]
  if (given === undefined || (given.startsWith(prefix) && /^[\x21-\x7e]{16,}$/.test(given))) return given
  const begin = prefix && ` that begins with ${prefix}`
  throw new GigpoError(
    "BAD_ARGUMENT",
    `${variable} must be a key of at least 16 characters without blanks${begin}; unset it to generate one.`,
  )
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest()
}
