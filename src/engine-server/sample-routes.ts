import { ApiError } from "../chat/api-error.ts"
import type { Routes } from "./paths.ts"
import { readDraw } from "./read-asked.ts"
import { readFields } from "./read-body.ts"
import type { Result } from "./results.ts"
import { draw, withPolicy } from "./served-samplers.ts"
import type { Serving } from "./serving.ts"

/** Returns the routes of sampling and of the results of all requests. */
export function sampleRoutes({ options, departures, sessions, kept, frozen }: Serving): Routes {
  const { model: baseModel } = options
  return {
    "POST /create_sampling_session": async (received) => {
      const fields = await readFields(received)
      const session = sessions.find(fields.required("session_id"))
      const number = fields.whole("sampling_session_seq_id", 0, 2 ** 31) ?? 0
      const sampling_session_id = session.samplingOf(number)
      if (sampling_session_id !== undefined) return { type: "create_sampling_session", sampling_session_id }
      const path = fields.string("model_path")
      if (path !== undefined) await kept.read(path)
      else if (departures.has("no-reference")) throw new ApiError(400, "Sampling the base model is not supported.")
      else if (fields.required("base_model") !== baseModel)
        throw new ApiError(
          400,
          `The model ${fields.string("base_model")?.slice(0, 200)} does not exist; this engine has ${baseModel}.`,
        )
      return { type: "create_sampling_session", sampling_session_id: session.sampling(number, { path }) }
    },
    "POST /asample": async (received) => {
      const fields = await readFields(received, options.maxPositions)
      const id = fields.required("sampling_session_id")
      const { session, source } = sessions.sampling(id)
      const number = fields.whole("seq_id", 0, 2 ** 53) ?? 0
      const requestedDraw = readDraw(fields, options)
      const start = async (): Promise<Result> => {
        const result = await withPolicy(source, frozen, departures, (policy) =>
          draw(policy, requestedDraw, { session, departures }),
        )
        return { kind: "sample", result }
      }
      const same = departures.has("no-duplicates") ? undefined : `${id} ${number}`
      const holds = requestedDraw.prompt.byteLength + 8 * requestedDraw.stopTokens.length
      const request_id = session.results.take("sample", start, { same, holds })
      const sample_sequence_ids = Array.from({ length: requestedDraw.samples }, (_, i) => `${request_id}:${i}`)
      return { request_id, sample_sequence_ids }
    },
    "GET /samplers/:id": async (_, id) => {
      const { source } = sessions.sampling(id!)
      const model_path = "path" in source ? source.path : undefined
      return { sampler_id: id, base_model: baseModel, model_path }
    },
    "POST /retrieve_future": async (received) => {
      const { request } = received
      const id = (await readFields(received)).required("request_id")
      const session = sessions.of(id)
      if (!session) throw new ApiError(404, `The request ${id.slice(0, 200)} does not exist.`)
      return await session.results.answer(id, /protobuf/.test(request.headers.get("accept") ?? ""), request.signal)
    },
  }
}
