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

/** Generator that answers the holder of a key. */
export interface Speaker {
  readonly voice: ReplyGenerator
  readonly models: readonly string[]
  readonly textOf: TokenText
  /** Aborted when the key becomes invalid. */
  readonly signal?: AbortSignal
  /** Episode whose anchor state and reward the holder may post; absent if that needs the control key. */
  readonly episode?: ToldEpisode
}

/** Rights of a key: the model, or only anchor state and reward of an episode. */
export type KeyHolder = Speaker | { readonly episode: ToldEpisode }

export interface EndpointSetup {
  /** Returns undefined for an unknown or expired key. */
  readonly find: (key: string) => KeyHolder | undefined
  /** Receives errors of the server, of which clients get no details. */
  readonly onError?: (error: unknown) => void
  /** Called for each request once its response is complete. */
  readonly onAnswer?: (answered: Answered) => void
}

/** Loggable facts about a request, without content and keys. */
export interface Answered {
  readonly method: string
  /** Path as the endpoint reads it, without a prefix before /v1 and without the query. */
  readonly path: string
  /** 499 if the client closed the connection. */
  readonly status: number
  readonly milliseconds: number
  /** Tokens of the prompt and of all completions, if there are any. */
  readonly tokens?: TokenCount
}

/**
 * Answers a request. Clients with different addresses share the model equally; without an address all are one client.
 */
export type Endpoint = (request: Request, client?: string) => Promise<Response>

/**
 * OpenAI's API on `fetch` requests and responses: chat completions, responses and models. Used by the server and as
 * `fetch` by clients in this process.
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

/** Path from its last `/v1/` on, without trailing slashes, in linear time. */
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
  if (!("voice" in holder))
    throw new ApiError(403, "A control key is only valid for /v1/gigpo/step and /v1/gigpo/reward.")
  const speaker = holder
  if (/^\/v1\/models(\/|$)/.test(path) && request.method === "GET") {
    const answer = tellModels(path, speaker.models)
    done(200)
    return json(200, answer)
  }
  if (path === "/v1/embeddings")
    throw new ApiError(404, "Embeddings are not supported; use /v1/chat/completions or /v1/responses.")
  const dialect = Object.hasOwn(dialects, path) ? dialects[path] : undefined
  if (!dialect) throw new ApiError(404, "Unknown path; available: /v1/chat/completions, /v1/responses and /v1/models.")
  if (request.method !== "POST") throw new ApiError(405, "Use POST.")
  const { digest, ...asked } = await readCall(request, speaker, dialect, client)
  return await answerCall({ request, speaker, ...asked, same: `${path} ${digest}`, done, onError })
}

type Asked = Pick<Asking, "call" | "answer" | "arrival"> & { readonly digest: string }

/** Reads the call of a request and takes its place in the order of the episode. */
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

/** Message for an invalid key. */
export const unknownKey = "This key is unknown or has expired; send the key of the server as `Authorization: Bearer …`."

const controlOnly =
  "This request needs the control key of the episode. The model key, which tools may know, is refused: set agent.control " +
  "(descriptor or environment), and send the key that the program then receives; or print the reward as the last line."

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
