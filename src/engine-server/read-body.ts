import { ApiError } from "../chat/api-error.ts"
import { FieldReader } from "../chat/fields.ts"
import { readBytes } from "../http/body.ts"
import type { JsonLimits } from "../tinker/bounded-json.ts"
import { mostBytes } from "../tinker/limits.ts"
import { callFromJson, decodeCall, type TrainingCall } from "../tinker/training-call.ts"
import { GigpoError } from "../util/errors.ts"
import type { Pace, Pieces } from "../util/pace.ts"
import { decompressed } from "./decompressed.ts"
import type { Departures } from "./departures.ts"
import type { Received } from "./paths.ts"
import { readJson } from "./read-json.ts"
import { Room } from "./room.ts"

interface BodyLimits extends JsonLimits {
  readonly bytes: number
}
/** Limits of requests other than training calls: names, settings and one prompt. */
const ofRequest: BodyLimits = { bytes: 2 ** 20, strings: 2 ** 15, values: 2 ** 18 }
/** Limits of training calls. Clients that send JSON split batches as for protocol buffers: about 700,000 numbers. */
const ofCall: BodyLimits = { bytes: mostBytes, strings: 2 ** 17, values: 2 ** 21 }

/** Memory for bodies that are being read, of all clients of all servers in this process. */
const room = new Room(2 ** 30)

/**
 * Reads a JSON body. Unknown fields are ignored, since clients may be newer.
 *
 * @param tokens - maximum tokens of a prompt in the body; each may take 32 bytes. Default 0.
 */
export async function readFields(received: Received, tokens = 0): Promise<FieldReader> {
  const limits = { ...ofRequest, bytes: ofRequest.bytes + 32 * tokens, values: ofRequest.values + tokens }
  return await room.holding(async (hold) => {
    const bytes = await readBytes(received.request, limits.bytes, { count: hold, pace: received.pace })
    return new FieldReader(await readJson(bytes, received, limits))
  })
}

/** Reads a training call in either encoding, in short pieces. */
export async function readCall(
  received: Received,
  forwardOnly: boolean,
  { departures, maxPositions }: { readonly departures: Departures; readonly maxPositions: number },
): Promise<TrainingCall> {
  return await room.holding(async (hold) => {
    const { request, pace } = received
    const type = request.headers.get("content-type") ?? ""
    if (!/protobuf/.test(type)) {
      if (!forwardOnly && departures.has("protobuf-only")) throw new ApiError(415, "Send application/x-protobuf.")
      const body = await readJson(await readBytes(request, ofCall.bytes, { count: hold, pace }), received, ofCall)
      return await orRefused(pace, callFromJson(body, forwardOnly, maxPositions))
    }
    if (departures.has("json-only")) throw new ApiError(415, "Send application/json.")
    const bytes = await readBytes(request, mostBytes, { count: hold, pace })
    const decoded = await decompressed(bytes, request.headers.get("content-encoding"), pace)
    return await orRefused(pace, decodeCall(decoded, maxPositions))
  })
}

async function orRefused(pace: Pace, call: Pieces<TrainingCall>): Promise<TrainingCall> {
  try {
    return await pace.through(call)
  } catch (error) {
    if (GigpoError.is(error)) throw new ApiError(422, error.message)
    throw error
  }
}
