/** Bytes; an answer that is larger is no answer. */
const longestBody = 16 * 2 ** 20

/** The body of a server's answer is longer than anything sensible. */
export class BodyTooLong extends Error {
  override readonly name = "BodyTooLong"

  constructor() {
    super(`more than ${longestBody / 2 ** 20} MiB`)
  }
}

/**
 * The body as text in UTF-8. A server that sends without end is not read to the end.
 *
 * @throws BodyTooLong above 16 MiB, and what `fetch` throws where the connection breaks
 */
export async function readBody(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  // Leaving the loop cancels what is still to come.
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > longestBody) throw new BodyTooLong()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}
