import { GigpoError } from "../../errors.ts"
import { checkArguments, type KeysOf } from "../../options/arguments.ts"
import { ApiError } from "../../server/api-error.ts"
import { listen } from "../../server/http.ts"
import { isKey, newKey } from "../../server/key.ts"
import type { Source } from "../data/source.ts"
import { answerApi } from "./api.ts"
import { type EpisodeReader, recordedEpisodes } from "./episode-reader.ts"
import { type PageFile, readPage } from "./page-files.ts"
import { runSource } from "./run-source.ts"

export interface ViewOptions {
  /** Default 127.0.0.1: this machine alone. Who is elsewhere needs the token all the same. */
  readonly host?: string
  /** Default 0: any that is free. */
  readonly port?: number
  /** More names under which it may be called: a proxy's, say. */
  readonly names?: readonly string[]
  /** Told why something could not be read; the page hears no more than that. */
  readonly onError?: (error: unknown) => void
}

export interface OpenedView {
  /** Where the page is; the token stands behind its #, which is never sent. */
  readonly url: string
  /** Ends running requests and frees the port. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const optionKeys: KeysOf<ViewOptions> = { host: true, port: true, names: true, onError: true }

/**
 * Shows runs on a web page, as they are and as they go on. Nothing can be changed there, and nothing is read but what runs keep in
 * their folders.
 *
 * @param runs - folders of runs, and folders that such lie in, where more may appear.
 * @param reader - reads their episodes. Default: as `recordEpisodes` writes them.
 * @throws GigpoError `BAD_ARGUMENT` where there is no such folder, or no run in one; `IO` where the address cannot be listened on, or
 * the page was not built.
 */
export async function openView(
  runs: readonly string[],
  options: ViewOptions = {},
  reader: EpisodeReader = recordedEpisodes,
): Promise<OpenedView> {
  checkArguments("openView", options, optionKeys)
  const { onError, ...http } = options
  const [page, source] = [await readPage(), await runSource(runs, reader, (error) => onError?.(error))]
  const token = newKey()
  const server = await listen((request) => answer(request, { page, source, token, onError }), { ...http, keyed: true })
  const close = () => server.close()
  return { url: `${server.url}/#/?token=${token}`, close, [Symbol.asyncDispose]: close }
}

interface Shown {
  readonly page: ReadonlyMap<string, PageFile>
  readonly source: Source
  readonly token: string
  readonly onError: ViewOptions["onError"]
}

/** The page may load its own files, ask this server, and nothing else; nobody may frame it. */
const policy = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; worker-src blob:; " +
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
}

async function answer(request: Request, shown: Shown): Promise<Response> {
  let response: Response
  try {
    response = await answered(request, shown)
  } catch (error) {
    const told = error instanceof ApiError ? error : new ApiError(500, whatFailed(error))
    if (told !== error) shown.onError?.(error)
    response = Response.json(told, { status: told.status, headers: { "cache-control": "no-store" } })
    if (told.status === 405) response.headers.set("allow", "GET, HEAD")
    if (told.status === 401) response.headers.set("www-authenticate", "Bearer")
  }
  for (const [name, value] of Object.entries(policy)) response.headers.set(name, value)
  return response
}

/** A file that is broken its reader can mend; what else fails is for whoever started the server to see. */
function whatFailed(error: unknown): string {
  const isBroken = GigpoError.is(error) && error.code === "RUN_CORRUPT"
  return isBroken ? error.message : "That could not be read. Where gigpo view runs it is said why."
}

async function answered(request: Request, { page, source, token }: Shown): Promise<Response> {
  if (request.method !== "GET" && request.method !== "HEAD") throw new ApiError(405, "Here is only something to read.")
  const { pathname } = new URL(request.url)
  if (!pathname.startsWith("/api/")) {
    const file = page.get(pathname === "/" ? "index.html" : pathname.slice(1))
    if (!file) throw new ApiError(404, "There is nothing of that name here.")
    return new Response(file.bytes, { headers: { "content-type": file.type, "cache-control": "no-cache" } })
  }
  const [, given = ""] = /^Bearer (\S+)$/i.exec(request.headers.get("authorization") ?? "") ?? []
  if (!isKey(given, token))
    throw new ApiError(401, "The address of this page has no valid token: open the one that gigpo view has printed.")
  return await answerApi(source, pathname.slice("/api/".length), request)
}
