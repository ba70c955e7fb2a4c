import { encodeSample, encodeTraining, sampleParts, type Top, trainingParts, writtenParts } from "../tinker/results.ts"
import type { Settled } from "./results.ts"

/** Returns the response of /retrieve_future for a result. */
export function written(settled: Settled, protobuf: boolean): Response {
  switch (settled.kind) {
    case "json":
      return Response.json(settled.body)
    case "failed":
      return Response.json({ error: settled.error, category: settled.category })
    case "training":
      return protobuf ? bytes(encodeTraining(settled.result)) : json(writtenParts(trainingParts(settled.result)))
    case "sample":
      return protobuf ? bytes(encodeSample(settled.result)) : json(writtenParts(sampleParts(settled.result)))
  }
}

/** Returns the bytes that a result takes in memory; 0 for small kinds. */
export function bytesOf(settled: Settled): number {
  if (settled.kind === "training") return settled.result.logProbs.reduce((sum, { byteLength }) => sum + byteLength, 0)
  if (settled.kind !== "sample") return 0
  const { sequences, promptLogProbs, promptTop } = settled.result
  const ofTop = (top: Top | undefined) => (top ? top.tokens.byteLength + top.logProbs.byteLength : 0)
  const ofSequences = sequences.map(
    ({ tokens, logProbs, top }) => tokens.byteLength + (logProbs?.byteLength ?? 0) + ofTop(top),
  )
  return ofSequences.reduce((sum, one) => sum + one, (promptLogProbs?.byteLength ?? 0) + ofTop(promptTop))
}

const bytes = (body: Uint8Array) =>
  new Response(body as Uint8Array<ArrayBuffer>, { headers: { "content-type": "application/x-protobuf" } })

/** Streams JSON in pieces, so that other requests are answered in between: a result of a million tokens is a long text. */
function json(parts: Iterator<string>): Response {
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      let text = ""
      for (;;) {
        const { done, value } = parts.next()
        if (done) {
          if (text !== "") controller.enqueue(Buffer.from(text))
          return controller.close()
        }
        text += value
        if (text.length > pieceLength) return controller.enqueue(Buffer.from(text))
      }
    },
  })
  return new Response(body, { headers: { "content-type": "application/json" } })
}

const pieceLength = 65_536
