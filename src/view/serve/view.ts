import { ApiError } from "../../chat/api-error.ts"
import { FairQueue } from "../../http/fair-queue.ts"
import type { Keys } from "../../http/guard.ts"
import { isKey, keyOf, newKey } from "../../http/key.ts"
import { listen } from "../../http/listen.ts"
import { checkArguments, type KeysOf } from "../../options/arguments.ts"
import { GigpoError } from "../../util/errors.ts"
import type { Source } from "../data/source.ts"
import { answerApi, takesGzip } from "./api.ts"
import { type BrowserKey, browserKey } from "./browser-key.ts"
import { type EpisodeReader, recordedEpisodes } from "./episode-reader.ts"
import { type ServedFile, servedPage } from "./page-files.ts"
import { runSource } from "./run-source.ts"

/** Options of `openView`. */
export interface ViewOptions {
  /** Bind address. Default 127.0.0.1: this machine only. The token is required in any case. */
  readonly host?: string
  /** Port. Default 0, which picks a free port. */
  readonly port?: number
  /** Additional host names that requests may use, e.g. a proxy's. */
  readonly names?: readonly string[]
  /**
   * Whether browsers that have opened the page stay connected for 30 days, also after a restart, by a key in the state folder of gigpo.
   * Default false: until the server stops.
   */
  readonly rememberBrowsers?: boolean
  /** Called with the reason if something could not be read; the page shows only that it failed. */
  readonly onError?: (error: unknown) => void
}

/** Running dashboard. */
export interface OpenedView {
  /** Address of the page, with the token in the fragment (after #), which is never sent. */
  readonly url: string
  /** Aborts running requests and frees the port. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const optionKeys: KeysOf<ViewOptions> = { host: true, port: true, names: true, rememberBrowsers: true, onError: true }

/**
 * Serves the dashboard of runs, including runs in progress. The page is read-only, and only the contents of run folders are read.
 *
 * @param runs - folders of runs, and folders that contain runs, in which more may appear
 * @param reader - reader of the episodes. Default: the format of `recordEpisodes`.
 * @throws GigpoError `BAD_ARGUMENT` if a folder does not exist or contains no run; `IO` if the address cannot be bound, or the page was
 * not built
 */
export async function openView(
  runs: readonly string[],
  options: ViewOptions = {},
  reader: EpisodeReader = recordedEpisodes,
): Promise<OpenedView> {
  checkArguments("openView", options, optionKeys)
  const { onError, rememberBrowsers = false, ...http } = options
  if (typeof rememberBrowsers !== "boolean")
    throw new GigpoError("BAD_ARGUMENT", "openView: rememberBrowsers must be true or false.")
  const [page, source] = [await servedPage(), await runSource(runs, reader, (error) => onError?.(error))]
  const [token, browsers] = [newKey(), await browserKey(rememberBrowsers)]
  const keys: Keys = {
    known: (given) => [token, browsers.value].filter((key) => isKey(given, key)).length > 0,
    open: (path) => !path.startsWith("/api/"),
    cookie: browsers.cookie,
    refusal: "This browser has not opened the page with a valid token: open the address that gigpo view printed last.",
  }
  const turns = new FairQueue(mostAnswers, mostOfClient)
  const shown = { page, source, keys, browsers, turns, onError }
  const server = await listen((request, client) => answer(request, client, shown), { ...http, keys })
  const close = () => server.close()
  return { url: `${server.url}/#/?token=${token}`, close, [Symbol.asyncDispose]: close }
}

/** Responses computed at the same time, in all and per client; further requests wait. A page sends several at once. */
const [mostAnswers, mostOfClient] = [8, 2]

interface Shown {
  readonly page: ReadonlyMap<string, ServedFile>
  readonly source: Source
  readonly keys: Keys
  readonly browsers: BrowserKey
  readonly turns: FairQueue
  readonly onError: ViewOptions["onError"]
}

/** The page may load its own files and contact this server only; no page may frame it. */
const policy = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; worker-src blob:; " +
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
}

async function answer(request: Request, client: string, shown: Shown): Promise<Response> {
  let response: Response
  try {
    response = await answered(request, client, shown)
  } catch (error) {
    const apiError = error instanceof ApiError ? error : new ApiError(500, whatFailed(error))
    if (apiError !== error && !request.signal.aborted) shown.onError?.(error)
    response = Response.json(apiError, { status: apiError.status, headers: { "cache-control": "no-store" } })
    if (apiError.status === 405) response.headers.set("allow", "GET, HEAD")
    if (apiError.status === 401) response.headers.set("www-authenticate", "Bearer")
  }
  for (const [name, value] of Object.entries(policy)) response.headers.set(name, value)
  return response
}

/** Broken files are reported to the reader, who can fix them; other errors only to the owner of the server. */
function whatFailed(error: unknown): string {
  const isBroken = GigpoError.is(error) && error.code === "RUN_CORRUPT"
  return isBroken ? error.message : "This could not be read. The output of gigpo view contains the reason."
}

async function answered(request: Request, client: string, shown: Shown): Promise<Response> {
  const { page, source, keys, browsers, turns } = shown
  if (request.method !== "GET" && request.method !== "HEAD") throw new ApiError(405, "This server is read-only.")
  const { pathname } = new URL(request.url)
  if (!pathname.startsWith("/api/")) {
    const file = page.get(pathname === "/" ? "index.html" : pathname.slice(1))
    if (!file) throw new ApiError(404, "There is no such file.")
    const headers = { "content-type": file.type, "cache-control": "no-cache", vary: "accept-encoding" }
    if (!takesGzip(request)) return new Response(file.bytes, { headers })
    return new Response(file.packed, { headers: { ...headers, "content-encoding": "gzip" } })
  }
  // Checked again on the normalized path: /page/../api/runs needs a key, too.
  if (!keys.known(keyOf((name) => request.headers.get(name), keys.cookie))) throw new ApiError(401, keys.refusal)
  if (pathname === "/api/session")
    return new Response(null, { status: 204, headers: { "set-cookie": browsers.header, "cache-control": "no-store" } })
  return await answerApi(source, pathname.slice("/api/".length), request, (work) => turns.take(client, work))
}
