import { GigpoError } from "../../errors.ts"
import { callFromJson, decodeCall, type TrainingCall } from "../../tinker/training-call.ts"
import { ApiError } from "../api-error.ts"
import { FieldReader } from "../fields.ts"
import { readBody } from "../read-body.ts"
import type { Departures } from "./departures.ts"

/** Bytes of a call of training; clients cut batches at five million. */
const longestCall = 64 * 2 ** 20

/** The fields of a JSON body. What is not known is passed over: clients are newer than this. */
export async function readFields(request: Request): Promise<FieldReader> {
  return new FieldReader((await readBody(request)).value)
}

/** A call of training, in either form. */
export async function readCall(request: Request, forwardOnly: boolean, departures: Departures): Promise<TrainingCall> {
  const type = request.headers.get("content-type") ?? ""
  if (!/protobuf/.test(type)) {
    if (!forwardOnly && departures.has("protobuf-only")) throw new ApiError(415, "Send application/x-protobuf.")
    const { value } = await readBody(request)
    return orRefused(() => callFromJson(value, forwardOnly))
  }
  if (departures.has("json-only")) throw new ApiError(415, "Send application/json.")
  const bytes = await readBytes(request)
  return orRefused(() => decodeCall(bytes))
}

async function readBytes(request: Request): Promise<Uint8Array> {
  const declared = Number(request.headers.get("content-length") ?? 0)
  if (declared > longestCall) throw new ApiError(413, `A call may have ${longestCall} bytes.`)
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of request.body ?? []) {
    length += chunk.length
    if (length > longestCall) throw new ApiError(413, `A call may have ${longestCall} bytes.`)
    chunks.push(chunk)
  }
  const bytes = Buffer.concat(chunks)
  const encoding = request.headers.get("content-encoding")
  if (encoding === null || encoding === "identity") return bytes
  if (encoding !== "zstd") throw new ApiError(415, `A call may be compressed by zstd, not by ${encoding.slice(0, 50)}.`)
  return await decompressed(bytes)
}

async function decompressed(bytes: Uint8Array): Promise<Uint8Array> {
  const { Decompress } = await import("fzstd")
  const parts: Uint8Array[] = []
  let length = 0
  try {
    const stream = new Decompress((part) => {
      length += part.length
      if (length > longestCall) throw new ApiError(413, `A call may have ${longestCall} bytes.`)
      parts.push(part)
    })
    stream.push(bytes, true)
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError(400, "The call is no zstd.")
  }
  return Buffer.concat(parts)
}

function orRefused(read: () => TrainingCall): TrainingCall {
  try {
    return read()
  } catch (error) {
    if (GigpoError.is(error)) throw new ApiError(422, error.message)
    throw error
  }
}
