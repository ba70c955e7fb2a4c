import { display } from "../options/display.ts"
import type { GigpoError } from "../util/errors.ts"
import { badAnswer } from "./errors.ts"
import { isCommit } from "./names.ts"
import { bounded, type HubRequest, request, withRetries } from "./request.ts"

/** File of a repository. */
export interface HubFile {
  /** Path in the repository, with slashes. */
  readonly path: string
  /** Size in bytes. */
  readonly size: number
  /** Name of the content in the cache: SHA-256 of a large file, git's SHA-1 of a small one. */
  readonly blob: string
}

/** File as the listing of a server describes it. Listings of mirrors may have only the path. */
export type ListedFile = Pick<HubFile, "path"> & Partial<HubFile>

export interface Listing {
  readonly commit: string
  readonly files: readonly ListedFile[]
}

/** Maximum size of a listing in bytes: about ten times the largest of the Hub. */
const largest = 32 * 2 ** 20
/** Maximum duration of reading a listing in milliseconds. */
const longest = 120_000

/**
 * Returns the commit that a revision points to now, and its files.
 *
 * @throws GigpoError `HUB_REJECTED` for a model that the Hub rejects, and for invalid names and sizes; `HUB_LOST`
 */
export async function readListing(hubRequest: HubRequest): Promise<Listing> {
  const { settings, name } = hubRequest
  const { endpoint } = settings
  const { host } = new URL(endpoint)
  const url = `${endpoint}/api/models/${name.repository}/revision/${encodeURIComponent(name.revision ?? "main")}?blobs=true`
  const text = await withRetries(hubRequest, () =>
    request(hubRequest, url, { headers: { accept: "application/json" } }, async (response, alive) => {
      const end = performance.now() + longest
      const timed = () => {
        if (performance.now() > end) throw badAnswer(host, `a listing that takes more than ${longest / 1000} s`)
        alive()
      }
      const found = await bounded(response, timed, largest)
      if (found === undefined) throw badAnswer(host, `a listing of more than ${largest / 2 ** 20} MiB`)
      return found.toString("utf8")
    }),
  )
  return parseListing(text, host)
}

/** Parses a listing in the JSON of the Hub, and checks each name and size. */
export function parseListing(text: string, host: string): Listing {
  const fail = (what: string) => badAnswer(host, what)
  let json: { readonly sha?: unknown; readonly siblings?: unknown }
  try {
    json = Object(JSON.parse(text))
  } catch {
    throw fail("a listing that is not JSON")
  }
  const { sha, siblings } = json
  if (typeof sha !== "string" || !isCommit(sha)) throw fail("a listing without a commit")
  if (!Array.isArray(siblings)) throw fail("a listing without files")
  const files = siblings.map((one) => readFile(one, fail))
  const names = new Set<string>()
  for (const { path } of files) {
    // Names that differ only in case are one file on a case-insensitive file system.
    const name = path.toLowerCase()
    if (names.has(name)) throw fail(`two files with the name ${JSON.stringify(path.slice(0, 200))}`)
    names.add(name)
  }
  return { commit: sha, files }
}

function readFile(value: unknown, fail: (what: string) => GigpoError): ListedFile {
  const { rfilename: path, size: plain, blobId, lfs } = Object(value) as Record<string, unknown>
  if (typeof path !== "string" || !isPlainPath(path))
    throw fail(`a file with the invalid name ${(JSON.stringify(path) ?? "undefined").slice(0, 200)}`)
  const large = Object(lfs ?? {}) as Record<string, unknown>
  const size = large.size ?? plain
  const blob = large.sha256 ?? blobId
  if (size === undefined || size === null || blob === undefined || blob === null) return { path }
  return checkedFile(path, size, blob, fail)
}

/** Returns a file after checking its size and digest. */
export function checkedFile(path: string, size: unknown, blob: unknown, fail: (what: string) => GigpoError): HubFile {
  if (!Number.isSafeInteger(size) || (size as number) < 0 || (size as number) > 2 ** 50)
    throw fail(`an invalid size of ${display(size)} for ${path}`)
  if (typeof blob !== "string" || !/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(blob)) throw fail(`no valid digest for ${path}`)
  return { path, size: size as number, blob }
}

/** Device names of Windows, which are reserved with any extension. */
const reserved = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i

/** Whether a path is valid on every system and stays inside its folder. */
function isPlainPath(path: string): boolean {
  if (path.length > 1000) return false
  // Control characters, and characters with a special meaning in paths of Windows.
  if (/[\p{Cc}\p{Cs}\\:*?"<>|]/u.test(path)) return false
  return path
    .split("/")
    .every((part) => part !== "" && part.length <= 255 && !/^\.+$|[. ]$/.test(part) && !reserved.test(part))
}
