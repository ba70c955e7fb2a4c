import type { ServerResponse } from "node:http"
import { setImmediate } from "node:timers/promises"

/** Bytes of which a client must take some in time: one who takes a large answer steadily is not cut off. */
const slice = 65_536

/**
 * Writes the body of a response. More of a body is asked for only when the operating system has what came before: the maker of the body
 * then knows what was delivered. A client that takes nothing for so many milliseconds loses its connection.
 */
export async function write({ body }: Response, outgoing: ServerResponse, slowestReader: number): Promise<void> {
  try {
    for await (const chunk of body ?? []) {
      for (let from = 0; from < chunk.length && !outgoing.destroyed; from += slice)
        await flushed(outgoing, slowestReader, (done) => outgoing.write(chunk.subarray(from, from + slice), done))
      await setImmediate() // a body that always has more must not keep other clients from their turn
      if (outgoing.destroyed) break // leaving the loop cancels the rest
    }
    await flushed(outgoing, slowestReader, (done) => outgoing.end(done))
  } catch {
    outgoing.destroy() // a stream that breaks off must not look whole
  }
}

/** Ends an answer with a short text, or without any. */
export async function writeText(
  text: string | undefined,
  outgoing: ServerResponse,
  slowestReader: number,
): Promise<void> {
  await flushed(outgoing, slowestReader, (done) => outgoing.end(text, done))
}

/** Waits until something is written, or until the connection ends. */
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
