/** Whether a value is a SHA-256 in hexadecimal digits. */
export function isDigest(value: unknown): boolean {
  return typeof value === "string" && /^[0-9a-f]{64}$/.test(value)
}

/** First digits of a digest, for display. */
export function shortDigest(digest: string): string {
  return digest.slice(0, 16)
}
