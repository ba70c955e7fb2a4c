import { createHash } from "node:crypto"
import { ApiError } from "./api-error.ts"

/** Bytes of a body. */
const longestBody = 32 * 2 ** 20
/** How deep JSON may be nested: what reads it must not run out of stack. */
const deepestBody = 200

export interface Body {
  readonly value: unknown
  /** The same for the same bytes. */
  readonly digest: string
}

/** The JSON of a request from anybody. */
export async function readBody(request: Request): Promise<Body> {
  if (!/^application\/json\b/i.test(request.headers.get("content-type") ?? ""))
    throw new ApiError(415, "Send JSON, as content-type: application/json.")
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of request.body ?? []) {
      length += chunk.length
      if (length > longestBody) throw new ApiError(413, `A request may have ${longestBody} bytes.`)
      chunks.push(chunk)
    }
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError(400, "The request broke off.")
  }
  const bytes = Buffer.concat(chunks)
  const text = bytes.toString("utf8")
  if (isTooDeep(text)) throw new ApiError(400, `The request is nested more than ${deepestBody} deep.`)
  try {
    return { value: JSON.parse(text), digest: createHash("sha256").update(bytes).digest("base64url") }
  } catch {
    throw new ApiError(400, "The request is not JSON.")
  }
}

function isTooDeep(text: string): boolean {
  let [depth, quoted] = [0, false]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (quoted) {
      if (code === 0x5c) at++
      else if (code === 0x22) quoted = false
    } else if (code === 0x22) quoted = true
    else if ((code === 0x7b || code === 0x5b) && ++depth > deepestBody) return true
    else if (code === 0x7d || code === 0x5d) depth--
  }
  return false
}
