import { ApiError } from "../../chat/api-error.ts"
import { FairQueue } from "../../http/fair-queue.ts"
import type { Keys } from "../../http/guard.ts"
import { isKey, keyOf, newKey } from "../../http/key.ts"
import { listen } from "../../http/listen.ts"
import { checkArguments, type KeysOf } from "../../options/arguments.ts"
import { GigpoError } from "../../util/errors.ts"
import type { Source } from "../data/source.ts"
import { answerApi } from "./api.ts"
import { type EpisodeReader, recordedEpisodes } from "./episode-reader.ts"
import { type PageFile, readPage } from "./page-files.ts"
import { runSource } from "./run-source.ts"

/** Options of `openView`. */
export interface ViewOptions {
  /** Bind address. Default 127.0.0.1: this machine only. The token is required in any case. */
  readonly host?: string
  /** Port. Default 0, which picks a free port. */
  readonly port?: number
  /** Additional host names that requests may use, e.g. a proxy's. */
  readonly names?: readonly string[]
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

const optionKeys: KeysOf<ViewOptions> = { host: true, port: true, names: true, onError: true }

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
  const { onError, ...http } = options
  const [page, source] = [await readPage(), await runSource(runs, reader, (error) => onError?.(error))]
  const token = newKey()
  const keys: Keys = {
    known: (given) => isKey(given, token),
    open: (path) => !path.startsWith("/api/"),
    refusal: "The address of this page has no valid token: open the one that gigpo view printed.",
  }
  const turns = new FairQueue(mostAnswers, mostOfClient)
  const shown = { page, source, keys, turns, onError }
  const server = await listen((request, client) => answer(request, client, shown), { ...http, keys })
  const close = () => server.close()
  return { url: `${server.url}/#/?token=${token}`, close, [Symbol.asyncDispose]: close }
}

/** Responses computed at the same time, in all and per client; further requests wait. A page sends several at once. */
const [mostAnswers, mostOfClient] = [8, 2]

interface Shown {
  readonly page: ReadonlyMap<string, PageFile>
  readonly source: Source
  readonly keys: Keys
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
    const told = error instanceof ApiError ? error : new ApiError(500, whatFailed(error))
    if (told !== error && !request.signal.aborted) shown.onError?.(error)
    response = Response.json(told, { status: told.status, headers: { "cache-control": "no-store" } })
    if (told.status === 405) response.headers.set("allow", "GET, HEAD")
    if (told.status === 401) response.headers.set("www-authenticate", "Bearer")
  }
  for (const [name, value] of Object.entries(policy)) response.headers.set(name, value)
  return response
}

/** Broken files are reported to the reader, who can fix them; other errors only to the owner of the server. */
function whatFailed(error: unknown): string {
  const isBroken = GigpoError.is(error) && error.code === "RUN_CORRUPT"
  return isBroken ? error.message : "This could not be read. The output of gigpo view contains the reason."
}

async function answered(request: Request, client: string, { page, source, keys, turns }: Shown): Promise<Response> {
  if (request.method !== "GET" && request.method !== "HEAD") throw new ApiError(405, "This server is read-only.")
  const { pathname } = new URL(request.url)
  if (!pathname.startsWith("/api/")) {
    const file = page.get(pathname === "/" ? "index.html" : pathname.slice(1))
    if (!file) throw new ApiError(404, "There is no such file.")
    return new Response(file.bytes, { headers: { "content-type": file.type, "cache-control": "no-cache" } })
  }
  // Checked again on the normalized path: /page/../api/runs needs a key, too.
  if (!keys.known(keyOf((name) => request.headers.get(name)))) throw new ApiError(401, keys.refusal)
  return await answerApi(source, pathname.slice("/api/".length), request, (work) => turns.take(client, work))
}
