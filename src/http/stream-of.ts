import { ReadableStream as NodeStream } from "node:stream/web"

/**
 * Stream of bytes that are produced on demand. Browser types, which the page is checked with, lack
 * `ReadableStream.from`.
 */
export function streamOf(
  parts: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  return NodeStream.from(parts) as unknown as ReadableStream<Uint8Array<ArrayBuffer>>
}
