import { ApiError, asApiError } from "../chat/api-error.ts"
import type { CompletionGenerator } from "../chat/completion-generator.ts"
import { countTokens, type TokenCount, type TokenText } from "../chat/dialect.ts"
import { keyOf } from "../http/key.ts"
import { Pace } from "../util/pace.ts"
import type { Done } from "./answer-call.ts"
import { json } from "./json.ts"
import { type EpisodeReports, tellings } from "./posted.ts"
import { parseBody, readBody } from "./read-body.ts"
import { errorBody, routeOf } from "./routes.ts"

/** Observer of the calls of a key's holder, from the arrival of the request to the end of its response. */
export interface CallObserver {
  begin(): void
  /** @param error - rejection or failure of the call */
  end(error?: ApiError): void
}

/** Generator that answers the holder of a key. */
export interface ServedModel {
  readonly generator: CompletionGenerator
  readonly models: readonly string[]
  readonly textOf: TokenText
  /** Aborted when the key becomes invalid. */
  readonly signal?: AbortSignal
  readonly calls?: CallObserver
  /** Episode whose anchor state and reward the holder may post; absent if that needs the control key. */
  readonly episode?: EpisodeReports
}

/** Rights of a key: the model, or only anchor state and reward of an episode. */
export type KeyHolder = ServedModel | { readonly episode: EpisodeReports }

export interface EndpointSetup {
  /** Returns undefined for an unknown or expired key. */
  readonly find: (key: string) => KeyHolder | undefined
  /** Whether the model can be called, for the health check. Default: always. */
  readonly ready?: () => boolean
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
 * APIs of OpenAI (chat completions, responses, completions, models), of Anthropic (messages) and of Ollama on `fetch`
 * requests and responses. Used by the server and as `fetch` by clients in this process.
 */
export function endpoint({ find, ready = () => true, onError, onAnswer }: EndpointSetup): Endpoint {
  return async (request, client) => {
    const began = performance.now()
    const path = pathOf(request)
    if (path === healthPath) return ready() ? json(200, { status: "ok" }) : json(503, { status: "opening the model" })
    const done: Done = (status, completions) =>
      onAnswer?.({
        ...{ method: request.method, path, status, milliseconds: performance.now() - began },
        ...(completions && { tokens: countTokens(completions) }),
      })
    try {
      return await respond({ request, path, find, done, onError, client })
    } catch (error) {
      const apiError = asApiError(error, request.signal)
      if (apiError.status === 500) onError?.(error)
      done(apiError.status)
      return json(apiError.status, errorBody(path, apiError))
    }
  }
}

/** Path from its last `/v1/` or `/api/` on, without trailing slashes, in linear time. */
function pathOf(request: Request): string {
  const { pathname } = new URL(request.url)
  let end = pathname.length
  while (pathname[end - 1] === "/") end--
  const path = pathname.slice(0, end)
  return path.slice(Math.max(path.lastIndexOf("/v1/"), path.lastIndexOf("/api/"), 0))
}

/** Request of the holder of a key of the model. */
export interface Routed {
  readonly request: Request
  readonly path: string
  readonly speaker: ServedModel
  readonly done: Done
  readonly onError: EndpointSetup["onError"] | undefined
  readonly client: string | undefined
}

type Responding = Omit<Routed, "speaker"> & Pick<EndpointSetup, "find">

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
  if (!("generator" in holder))
    throw new ApiError(403, "A control key is only valid for /v1/gigpo/step and /v1/gigpo/reward.")
  const routed = { request, path, speaker: holder, done, onError, client }
  return await routeOf(path, request.method).answer(routed)
}

/** Path that is answered without a key: whether the server is ready. */
export const healthPath = "/health"

/** Message for an invalid key. */
export const unknownKey =
  "This key is unknown or has expired; send the key of the server as `Authorization: Bearer …`, or as `x-api-key`."

const controlOnly =
  "This request needs the control key of the episode. The model key, which tools may know, is rejected: set agent.control " +
  "(descriptor or environment), and send the key that the program then receives; or print the reward as the last line."
