import { anthropic } from "../chat/anthropic/anthropic.ts"
import { ApiError } from "../chat/api-error.ts"
import { chat } from "../chat/completions/chat.ts"
import { noSuchModel } from "../chat/completions/read-chat.ts"
import { text } from "../chat/completions/text.ts"
import type { Dialect } from "../chat/dialect.ts"
import { ollamaVersion, show, tags } from "../chat/ollama/about.ts"
import { ollamaChat, ollamaGenerate } from "../chat/ollama/ollama.ts"
import { responses } from "../chat/responses/responses.ts"
import { countCall, sampleCall } from "./calls.ts"
import type { Routed } from "./endpoint.ts"
import { json } from "./json.ts"

/** What a path answers to the holder of a key of the model. */
interface Route {
  readonly method: "GET" | "POST"
  answer(routed: Routed): Promise<Response>
  /** Body of an error response. Default: as in OpenAI's API. */
  readonly error?: Dialect["error"]
}

const sampling = (dialect: Dialect): Route => ({
  method: "POST",
  answer: (routed) => sampleCall(routed, dialect),
  ...(dialect.error && { error: dialect.error }),
})

/** Facts that need no sampling. */
const telling = (method: Route["method"], tell: (routed: Routed) => object, error?: Dialect["error"]): Route => ({
  method,
  async answer(routed) {
    const body = tell(routed)
    routed.done(200)
    return json(200, body)
  },
  ...(error && { error }),
})

const routes: Readonly<Record<string, Route>> = {
  "/v1/chat/completions": sampling(chat),
  "/v1/responses": sampling(responses),
  "/v1/completions": sampling(text),
  "/v1/messages": sampling(anthropic),
  "/v1/messages/count_tokens": { ...sampling(anthropic), answer: (routed) => countCall(routed, anthropic) },
  "/v1/models": telling("GET", ({ speaker: { models } }) => ({ object: "list", data: models.map(model) })),
  "/api/chat": sampling(ollamaChat),
  "/api/generate": sampling(ollamaGenerate),
  "/api/tags": telling("GET", ({ speaker: { models } }) => tags(models), ollamaChat.error),
  "/api/show": telling("POST", ({ speaker: { generator } }) => show(generator), ollamaChat.error),
  "/api/version": telling("GET", () => ollamaVersion, ollamaChat.error),
}

const oneModel = telling("GET", ({ path, speaker: { models } }) => {
  const modelName = path.slice("/v1/models/".length)
  const name = models.find((one) => encodeURIComponent(one) === modelName || one === modelName)
  if (name === undefined) throw noSuchModel(modelName, models)
  return model(name)
})

/** @throws ApiError for an unknown path or method */
export function routeOf(path: string, method: string): Route {
  const route = known(path)
  if (path === "/v1/embeddings")
    throw new ApiError(404, "Embeddings are not supported; use /v1/chat/completions or /v1/responses.")
  if (!route) throw new ApiError(404, `Unknown path; available: ${Object.keys(routes).join(", ")}.`)
  if (method !== route.method && !(method === "HEAD" && route.method === "GET"))
    throw new ApiError(405, `Use ${route.method}.`)
  return route
}

/** Body of an error in the format of a path's API. */
export function errorBody(path: string, error: ApiError): object {
  return known(path)?.error?.(error) ?? error
}

function known(path: string): Route | undefined {
  if (path.startsWith("/v1/models/")) return oneModel
  return Object.hasOwn(routes, path) ? routes[path] : undefined
}

/** Model as clients of OpenAI's and of Anthropic's API know it. */
function model(id: string): object {
  const anthropic = { type: "model", display_name: id, created_at: new Date(0).toISOString() }
  return { ...{ id, object: "model", created: 0, owned_by: "gigpo" }, ...anthropic }
}
