import { ApiError } from "../chat/api-error.ts"
import type { Pace } from "../util/pace.ts"

/** Beginning of the paths of the API, after a prefix that a proxy may add. */
const prefix = "/api/v1/"

/** Request with its client. */
export interface Received {
  readonly request: Request
  /** Address of the client. */
  readonly address: string
  /** Pace of work for the request, whose owner is the address. */
  readonly pace: Pace
}

/** Handler of a route. Gets the values of the ":name" parts of the path. */
export type Handler = (received: Received, ...places: string[]) => Promise<object>
/** Handlers by method and path, as in "GET /samplers/:id". */
export type Routes = Readonly<Record<string, Handler>>

/** Target of a request. */
export interface Target {
  /** Path below /api/v1. */
  readonly path: string
  /** Part of the path up to and including /api/v1. */
  readonly before: string
}

/** Splits the path of a request. Throws `ApiError` 404 for a path outside the API. */
export function targetOf(pathname: string): Target {
  const at = pathname.indexOf(prefix)
  if (at < 0) throw new ApiError(404, `${pathname.slice(0, 200)} is not a path of the Tinker API.`)
  return { before: pathname.slice(0, at + prefix.length - 1), path: pathname.slice(at + prefix.length - 1) }
}

/** Finds the handlers of paths. */
export class Router {
  readonly #byShape = new Map<string, readonly { readonly parts: readonly string[]; readonly handler: Handler }[]>()

  constructor(routes: Routes) {
    for (const [name, handler] of Object.entries(routes)) {
      const [method = "", path = ""] = name.split(" ")
      const parts = path.split("/")
      const shape = shapeOf(method, parts)
      this.#byShape.set(shape, [...(this.#byShape.get(shape) ?? []), { parts, handler }])
    }
  }

  /**
   * Returns the handler of a request, bound to the values of its path.
   *
   * @throws ApiError 404 where there is none, 400 for invalid percent-encoded UTF-8
   */
  find(method: string, path: string): (received: Received) => Promise<object> {
    const given = path.split("/", 12)
    const found = (this.#byShape.get(shapeOf(method, given)) ?? []).find(({ parts }) =>
      parts.every((part, i) => (part.startsWith(":") ? given[i] !== "" : part === given[i])),
    )
    if (!found) throw new ApiError(404, `${method} ${path.slice(0, 200)} is not supported by this server.`)
    const places = found.parts.flatMap((part, i) => (part.startsWith(":") ? [decoded(given[i]!)] : []))
    return async (received) => await found.handler(received, ...places)
  }
}

const shapeOf = (method: string, parts: readonly string[]) => `${method} ${parts.length}`

function decoded(place: string): string {
  try {
    return decodeURIComponent(place)
  } catch {
    throw new ApiError(400, `${JSON.stringify(place.slice(0, 200))} is not valid percent-encoded UTF-8.`)
  }
}
