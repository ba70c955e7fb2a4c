import type { ServerResponse } from "node:http"
import { setImmediate } from "node:timers/promises"

/**
 * Bytes that a client must accept within the time limit: a client that reads a large response steadily is not cut off.
 */
const slice = 65_536

/**
 * Writes the body of a response. More is read from the body only when the operating system has accepted the previous
 * part, so that its producer knows what was delivered. A client that accepts nothing for `slowestReader` milliseconds
 * is disconnected.
 */
export async function write({ body }: Response, outgoing: ServerResponse, slowestReader: number): Promise<void> {
  try {
    for await (const chunk of body ?? []) {
      for (let from = 0; from < chunk.length && !outgoing.destroyed; from += slice)
        await flushed(outgoing, slowestReader, (done) => outgoing.write(chunk.subarray(from, from + slice), done))
      await setImmediate() // a body that is always ready must not starve other clients
      if (outgoing.destroyed) break // leaving the loop cancels the rest
    }
    await flushed(outgoing, slowestReader, (done) => outgoing.end(done))
  } catch {
    outgoing.destroy() // an interrupted stream must not look complete
  }
}

/** Ends a response with a short text or without a body. */
export async function writeText(
  text: string | undefined,
  outgoing: ServerResponse,
  slowestReader: number,
): Promise<void> {
  await flushed(outgoing, slowestReader, (done) => outgoing.end(text, done))
}

/** Waits until a write has completed or the connection ends. */
async function flushed(
  outgoing: ServerResponse,
  milliseconds: number,
  send: (done: () => void) => void,
): Promise<void> {
  if (outgoing.destroyed) return
  const slow = setTimeout(() => outgoing.destroy(), milliseconds)
  await new Promise<void>((resolve) => {
    outgoing.once("close", resolve)
    send(() => {
      outgoing.off("close", resolve)
      resolve()
    })
  })
  clearTimeout(slow)
}
