import { ApiError, asApiError } from "../chat/api-error.ts"
import { chat } from "../chat/completions/chat.ts"
import { noSuchModel } from "../chat/completions/read-chat.ts"
import { countTokens, type Dialect, type TokenCount, type TokenText } from "../chat/dialect.ts"
import type { ReplyGenerator } from "../chat/reply-generator.ts"
import { responses } from "../chat/responses/responses.ts"
import { clientNumber } from "../http/address.ts"
import { keyOf } from "../http/key.ts"
import { Pace } from "../util/pace.ts"
import { type Asking, answerCall, type Done } from "./answer-call.ts"
import { type ToldEpisode, tellings } from "./posted.ts"
import { parseBody, readBody } from "./read-body.ts"

/** Who answers the holder of a key. */
export interface Speaker {
  readonly voice: ReplyGenerator
  readonly models: readonly string[]
  readonly textOf: TokenText
  /** Aborted when nothing is to be sampled for this key any more. */
  readonly signal?: AbortSignal
  /** The episode whose state and reward the holder may give, where that is not left to another key. */
  readonly episode?: ToldEpisode
}

/** What a key is for: the model, or only the state and reward of an episode. */
export type KeyHolder = Speaker | { readonly episode: ToldEpisode }

export interface EndpointSetup {
  /** Undefined for a key that is unknown, or no longer valid. */
  readonly find: (key: string) => KeyHolder | undefined
  /** Told of faults that are not the client's, who hears no more than that there was one. */
  readonly onError?: (error: unknown) => void
  /** Told of each request once all of its answer is known. */
  readonly onAnswer?: (answered: Answered) => void
}

/** What may be written down of a request: nothing that was said in it, and no key. */
export interface Answered {
  readonly method: string
  /** What of it this endpoint reads: neither what clients may have put before /v1, nor a query. */
  readonly path: string
  /** 499 where the client went away. */
  readonly status: number
  readonly milliseconds: number
  /** Tokens of the prompt and of all replies, where there are replies. */
  readonly tokens?: TokenCount
}

/** Answers a request. Clients with an address of their own have equal shares of the model; without one, all are one client. */
export type Endpoint = (request: Request, client?: string) => Promise<Response>

/**
 * OpenAI's API over requests and responses as `fetch` knows them: chat completions, responses and models. It is the same for a
 * server and for clients in this process, whose `fetch` it can be.
 */
export function endpoint({ find, onError, onAnswer }: EndpointSetup): Endpoint {
  return async (request, client) => {
    const began = performance.now()
    const path = pathOf(request)
    const done: Done = (status, replies) =>
      onAnswer?.({
        ...{ method: request.method, path, status, milliseconds: performance.now() - began },
        ...(replies && { tokens: countTokens(replies) }),
      })
    try {
      return await respond({ request, path, find, done, onError, client })
    } catch (error) {
      const told = asApiError(error, request.signal)
      if (told.status === 500) onError?.(error)
      done(told.status)
      return json(told.status, told)
    }
  }
}

/** Path from its last `/v1/` on, without slashes at the end, in linear time. */
function pathOf(request: Request): string {
  const { pathname } = new URL(request.url)
  let end = pathname.length
  while (pathname[end - 1] === "/") end--
  const path = pathname.slice(0, end)
  return path.slice(Math.max(path.lastIndexOf("/v1/"), 0))
}

interface Responding extends Pick<EndpointSetup, "find"> {
  readonly request: Request
  readonly path: string
  readonly done: Done
  readonly onError: EndpointSetup["onError"] | undefined
  readonly client: string | undefined
}

async function respond({ request, path, find, done, onError, client }: Responding): Promise<Response> {
  const holder = find(keyOf((name) => request.headers.get(name)))
  if (!holder) throw new ApiError(401, unknownKey, { code: "invalid_api_key" })
  const telling = Object.hasOwn(tellings, path) ? tellings[path] : undefined
  if (telling) {
    if (!holder.episode) throw new ApiError(403, controlOnly)
    if (request.method !== "POST") throw new ApiError(405, "Use POST.")
    const body = await new Pace().through(parseBody(await readBody(request, 0)))
    telling(holder.episode, body.value)
    done(200)
    return json(200, {})
  }
  if (!("voice" in holder)) throw new ApiError(403, "A control key is for /v1/gigpo/step and /v1/gigpo/reward alone.")
  const speaker = holder
  if (/^\/v1\/models(\/|$)/.test(path) && request.method === "GET") {
    const answer = tellModels(path, speaker.models)
    done(200)
    return json(200, answer)
  }
  if (path === "/v1/embeddings")
    throw new ApiError(404, "This model makes no embeddings: it chats, at /v1/chat/completions and /v1/responses.")
  const dialect = Object.hasOwn(dialects, path) ? dialects[path] : undefined
  if (!dialect) throw new ApiError(404, "There is /v1/chat/completions, /v1/responses and /v1/models here.")
  if (request.method !== "POST") throw new ApiError(405, "Use POST.")
  const { digest, ...asked } = await readCall(request, speaker, dialect, client)
  return await answerCall({ request, speaker, ...asked, same: `${path} ${digest}`, done, onError })
}

type Asked = Pick<Asking, "call" | "answer" | "arrival"> & { readonly digest: string }

/** The call of a request, which has its place among those of its episode from now on. */
async function readCall(
  request: Request,
  { voice, models, textOf }: Speaker,
  dialect: Dialect,
  client: string | undefined,
): Promise<Asked> {
  const arrival = voice.arrive()
  try {
    const bytes = await readBody(request, voice.maxPositions)
    await voice.toRead(arrival)
    const { value, digest } = await new Pace(request.signal).through(parseBody(bytes))
    const { call, answer } = dialect.read(value, textOf)
    if (!models.includes(call.model)) throw noSuchModel(call.model, models)
    return { call: client === undefined ? call : { ...call, client: clientNumber(client) }, answer, arrival, digest }
  } catch (error) {
    voice.leave(arrival)
    throw error
  }
}

/** Message to a client whose key leads to no speaker. */
export const unknownKey =
  "This key is unknown here, or has expired; send the one that you were given as `Authorization: Bearer …`."

const controlOnly =
  "This request takes the episode's control key. The key of its model, which tools may have, is refused here: set agent.control " +
  "(descriptor or environment), and send the key that the program then gets; or print the reward as the last line."

const dialects: Readonly<Record<string, Dialect>> = { "/v1/chat/completions": chat, "/v1/responses": responses }

function tellModels(path: string, models: readonly string[]): object {
  const asked = path.slice("/v1/models/".length)
  if (asked === "") return { object: "list", data: models.map(model) }
  const name = models.find((one) => encodeURIComponent(one) === asked || one === asked)
  if (name === undefined) throw noSuchModel(asked, models)
  return model(name)
}

function model(id: string): object {
  return { id, object: "model", created: 0, owned_by: "gigpo" }
}

function json(status: number, body: object): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } })
}
