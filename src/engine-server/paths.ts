import { ApiError } from "../chat/api-error.ts"

/** Where the paths of the API begin, after what a proxy may have put before them. */
const prefix = "/api/v1/"

/** What answers requests of one method and one form of path; given the values of its ":name" parts, then the client's address. */
export type Handler = (request: Request, ...places: string[]) => Promise<object>
/** By method and path, as in "GET /samplers/:id". */
export type Routes = Readonly<Record<string, Handler>>

export interface Target {
  /** The path below /api/v1. */
  readonly path: string
  /** What stands before it. */
  readonly before: string
}

/** @throws ApiError 404 for a path that is not one of the API */
export function targetOf(pathname: string): Target {
  const at = pathname.indexOf(prefix)
  if (at < 0) throw new ApiError(404, `${pathname.slice(0, 200)} is no path of the Tinker API.`)
  return { before: pathname.slice(0, at + prefix.length - 1), path: pathname.slice(at + prefix.length - 1) }
}

/** Finds who answers a path. */
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
   * The handler of a request, with its places filled in.
   *
   * @throws ApiError 404 where there is none, 400 where a place is no percent-encoded UTF-8
   */
  find(method: string, path: string): (request: Request, client: string) => Promise<object> {
    const given = path.split("/", 12)
    const found = (this.#byShape.get(shapeOf(method, given)) ?? []).find(({ parts }) =>
      parts.every((part, i) => (part.startsWith(":") ? given[i] !== "" : part === given[i])),
    )
    if (!found) throw new ApiError(404, `${method} ${path.slice(0, 200)} is not of this server.`)
    const places = found.parts.flatMap((part, i) => (part.startsWith(":") ? [decoded(given[i]!)] : []))
    return async (request, client) => await found.handler(request, ...places, client)
  }
}

const shapeOf = (method: string, parts: readonly string[]) => `${method} ${parts.length}`

function decoded(place: string): string {
  try {
    return decodeURIComponent(place)
  } catch {
    throw new ApiError(400, `${JSON.stringify(place.slice(0, 200))} is no percent-encoded UTF-8.`)
  }
}
