import { createHash, randomBytes, timingSafeEqual } from "node:crypto"

/** A key that nobody guesses: 256 random bits. */
export function newKey(): string {
  return `gigpo-${randomBytes(32).toString("base64url")}`
}

/** Whether it is this key, in a time that does not tell how much of it is right. */
export function isKey(given: string, key: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest()
  return timingSafeEqual(digest(given), digest(key))
}
