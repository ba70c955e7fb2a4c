import { answerCall, type Done } from "./answer-call.ts"
import { ApiError, asApiError } from "./api-error.ts"
import { chat } from "./chat/chat.ts"
import { noSuchModel } from "./chat/read-chat.ts"
import { countTokens, type Dialect, type TokenCount, type TokenText } from "./dialect.ts"
import { readBody } from "./read-body.ts"
import { responses } from "./responses/responses.ts"
import { type ToldEpisode, tellings } from "./told.ts"
import type { Voice } from "./voice.ts"

/** Who answers the holder of a key. */
export interface Speaker {
  readonly voice: Voice
  readonly models: readonly string[]
  readonly textOf: TokenText
  /** Aborted when nothing is to be sampled for this key any more. */
  readonly signal?: AbortSignal
  /** The episode that the holder of the key plays, where there is one. */
  readonly episode?: ToldEpisode
}

export interface EndpointSetup {
  /** The speaker for a key; undefined for one that is unknown, or not any more. */
  readonly find: (key: string) => Speaker | undefined
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

/**
 * OpenAI's API over requests and responses as `fetch` knows them: chat completions, responses and models. It is the same for a
 * server and for clients in this process, whose `fetch` it can be.
 */
export function endpoint({ find, onError, onAnswer }: EndpointSetup): (request: Request) => Promise<Response> {
  return async (request) => {
    const began = performance.now()
    const path = pathOf(request)
    const done: Done = (status, replies) =>
      onAnswer?.({
        ...{ method: request.method, path, status, milliseconds: performance.now() - began },
        ...(replies && { tokens: countTokens(replies) }),
      })
    try {
      return await respond(request, path, find, done, onError)
    } catch (error) {
      const told = asApiError(error, request.signal)
      if (told.status === 500) onError?.(error)
      done(told.status)
      return json(told.status, told)
    }
  }
}

function pathOf(request: Request): string {
  return new URL(request.url).pathname.replace(/\/+$/, "").replace(/^.*\/v1(?=\/)/, "/v1")
}

async function respond(
  request: Request,
  path: string,
  find: EndpointSetup["find"],
  done: Done,
  onError: EndpointSetup["onError"],
): Promise<Response> {
  const speaker = find(keyOf(request))
  if (!speaker)
    throw new ApiError(
      401,
      "This key is unknown here, or has expired; send the one that you were given as `Authorization: Bearer …`.",
      { code: "invalid_api_key" },
    )
  if (/^\/v1\/models(\/|$)/.test(path) && request.method === "GET") {
    const answer = tellModels(path, speaker.models)
    done(200)
    return json(200, answer)
  }
  if (path === "/v1/embeddings")
    throw new ApiError(404, "This model makes no embeddings: it chats, at /v1/chat/completions and /v1/responses.")
  const dialect = Object.hasOwn(dialects, path) ? dialects[path] : undefined
  const telling = speaker.episode && Object.hasOwn(tellings, path) ? tellings[path] : undefined
  if (!dialect && !telling) throw new ApiError(404, "There is /v1/chat/completions, /v1/responses and /v1/models here.")
  if (request.method !== "POST") throw new ApiError(405, "Use POST.")
  const body = await readBody(request)
  if (!dialect) {
    telling!(speaker.episode!, body.value)
    return json(200, {})
  }
  const { call, answer } = dialect.read(body.value, speaker.textOf)
  if (!speaker.models.includes(call.model)) throw noSuchModel(call.model, speaker.models)
  return await answerCall({ request, speaker, call, answer, same: `${path} ${body.digest}`, done, onError })
}

const dialects: Readonly<Record<string, Dialect>> = { "/v1/chat/completions": chat, "/v1/responses": responses }

function keyOf(request: Request): string {
  return /^Bearer (.+)$/i.exec(request.headers.get("authorization") ?? "")?.[1]?.trim() ?? ""
}

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
