/** Maximum size of a response body in bytes. */
const longestBody = 16 * 2 ** 20

/** Error for a response body above the maximum size. */
export class BodyTooLong extends Error {
  override readonly name = "BodyTooLong"

  constructor() {
    super(`more than ${longestBody / 2 ** 20} MiB`)
  }
}

/**
 * Reads a response body as UTF-8 text.
 *
 * @throws BodyTooLong above 16 MiB, and the error of `fetch` if the connection breaks
 */
export async function readBody(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  // Leaving the loop cancels the rest of the stream.
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > longestBody) throw new BodyTooLong()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}
