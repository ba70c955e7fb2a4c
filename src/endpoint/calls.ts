import { type ApiError, asApiError } from "../chat/api-error.ts"
import type { Arrival } from "../chat/call-order.ts"
import { noSuchModel } from "../chat/completions/read-chat.ts"
import type { Dialect } from "../chat/dialect.ts"
import { prepare } from "../chat/preparing.ts"
import { clientNumber } from "../http/address.ts"
import { Pace } from "../util/pace.ts"
import { answerCall, type CallContext, type Done } from "./answer-call.ts"
import type { CallObserver, Routed } from "./endpoint.ts"
import { json } from "./json.ts"
import { parseBody, readBody } from "./read-body.ts"

/** Answers a call with completions. */
export async function sampleCall(routed: Routed, dialect: Dialect): Promise<Response> {
  const { request, path, speaker, done, onError } = routed
  const watched = watchedBy(speaker.calls, done)
  try {
    const { digest, ...readFields } = await readCall(routed, dialect, speaker.generator.arrive())
    return await answerCall({ request, speaker, ...readFields, same: `${path} ${digest}`, done: watched.done, onError })
  } catch (error) {
    watched.end(asApiError(error, request.signal))
    throw error
  }
}

/** Answers a call with the number of tokens of its prompt. */
export async function countCall(routed: Routed, dialect: Dialect): Promise<Response> {
  const { call } = await readCall(routed, dialect, undefined)
  const input_tokens = await routed.speaker.generator.countPrompt(call, routed.request.signal)
  routed.done(200)
  return json(200, { input_tokens })
}

/** Reports a call to its observer, once. */
function watchedBy(calls: CallObserver | undefined, done: Done): { readonly done: Done; end(error?: ApiError): void } {
  let ended = false
  const end = (error?: ApiError) => {
    if (!ended) calls?.end(error)
    ended = true
  }
  calls?.begin()
  return {
    end,
    done(status, completions, error) {
      end(error)
      done(status, completions)
    },
  }
}

type ReadCall = Pick<CallContext, "call" | "answer" | "arrival" | "streamType"> & { readonly digest: string }

/** Reads the call of a request and takes its place in the order of the episode. */
async function readCall(
  { request, speaker: { generator, models, textOf }, client }: Routed,
  dialect: Dialect,
  arrival: Arrival | undefined,
): Promise<ReadCall> {
  try {
    const number = client === undefined ? undefined : clientNumber(client)
    const pace = new Pace(request.signal, number)
    const bytes = await readBody(request, generator.maxPositions, pace)
    await generator.toRead(arrival)
    const from = { ...(number !== undefined && { client: number }), bytes: bytes.length }
    const { call, answer, digest } = await prepare(number, from.bytes, async () => {
      const { value, digest } = await pace.through(parseBody(bytes))
      return { ...(await pace.through(dialect.read(value, textOf))), digest }
    })
    if (!models.includes(call.model)) throw noSuchModel(call.model, models)
    const known = { ...call, ...from }
    return { call: known, answer, streamType: dialect.streamType, arrival, digest }
  } catch (error) {
    generator.leave(arrival)
    throw error
  }
}
