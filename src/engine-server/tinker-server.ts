import { ApiError, asApiError } from "../chat/api-error.ts"
import { clientNumber } from "../http/address.ts"
import type { Keys } from "../http/guard.ts"
import { isKey, keyOf } from "../http/key.ts"
import { Pace } from "../util/pace.ts"
import { Archives } from "./archives.ts"
import type { Departures } from "./departures.ts"
import { FrozenPolicies } from "./frozen-policies.ts"
import { KeptWeights } from "./kept-weights.ts"
import { modelRoutes } from "./model-routes.ts"
import { Router, targetOf } from "./paths.ts"
import { sampleRoutes } from "./sample-routes.ts"
import type { Serving, TinkerServerOptions } from "./serving.ts"
import { sessionRoutes } from "./session-routes.ts"
import { Sessions } from "./sessions.ts"
import { weightRoutes } from "./weight-routes.ts"

export type { TinkerServerOptions } from "./serving.ts"

/** Server of the Tinker API, without a socket. */
export interface TinkerServer extends AsyncDisposable {
  readonly keys: Keys
  /** Content encodings of requests that the server decodes. */
  readonly encodings: readonly string[]
  /**
   * Answers a request.
   *
   * @param client - address of the client, by which shares of the engine are divided. Default: one address for all calls without it.
   */
  answer(request: Request, client?: string): Promise<Response>
}

/** Returns the Tinker API over the native engine, for an HTTP server or for clients in this process. */
export function tinkerServer(options: TinkerServerOptions): TinkerServer {
  const { silence = 300, onError = () => {} } = options
  const departures: Departures = new Set(options.departures)
  const kept = new KeptWeights(options.checkpoints, options.checkpointBytes)
  void kept.recover().catch(onError)
  const openFrozen = async (path: string | undefined) =>
    path === undefined
      ? await options.openFrozen(undefined)
      : await kept.using(path, async ({ directory }) => await options.openFrozen(directory))
  const serving: Serving = {
    ...{ options, departures, kept },
    sessions: new Sessions({ silence, departures, onError }),
    archives: new Archives(kept),
    frozen: new FrozenPolicies({
      open: openFrozen,
      versionOf: (path) => kept.directoryOf(path),
      most: options.samplers ?? 2,
    }),
  }
  const open = new Router({
    "GET /healthz": async () => ({ status: "ok" }),
    "GET /downloads/:token": async (_, token) => await serving.archives.open(token!),
  })
  const keyed = new Router({
    ...sessionRoutes(serving),
    ...modelRoutes(serving),
    ...weightRoutes(serving),
    ...sampleRoutes(serving),
  })
  const created = departures.has("other-success") ? 202 : 200

  const keys: Keys = {
    known: (key) => isKey(key, options.key),
    open: (pathname) => /\/api\/v1\/(?:healthz|downloads\/[\w-]+)$/.test(pathname),
    refusal: "The key is not valid for this engine.",
  }

  const respond = async (request: Request, address: string): Promise<Response> => {
    const { pathname } = new URL(request.url)
    const isOpen = keys.open!(pathname)
    if (!isOpen && !keys.known(keyOf((name) => request.headers.get(name)))) throw new ApiError(401, keys.refusal)
    const { path } = targetOf(pathname)
    const { method } = request
    const found = await (isOpen ? open : keyed).find(
      method,
      path,
    )({ request, address, pace: new Pace(undefined, clientNumber(address)) })
    if (found instanceof Response) return found
    return Response.json(found, { status: method === "POST" && !path.endsWith("/finish") ? created : 200 })
  }

  return {
    keys,
    encodings: ["zstd"],
    answer: async (request, client = "") => {
      try {
        return await respond(request, client)
      } catch (error) {
        const apiError = asApiError(error, request.signal)
        if (apiError.status === 500) onError(error)
        const headers = { ...(apiError.status === 429 && { "retry-after": "1" }) }
        return Response.json({ ...apiError.toJSON(), detail: apiError.message }, { status: apiError.status, headers })
      }
    },
    async [Symbol.asyncDispose]() {
      await serving.sessions.dispose()
      await serving.frozen.dispose()
    },
  }
}
