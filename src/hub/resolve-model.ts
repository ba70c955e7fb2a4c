import { stat } from "node:fs/promises"
import { join } from "node:path"
import { ioError, isMissing, isThere } from "../files/io-error.ts"
import { editDistance } from "../util/edit-distance.ts"
import { GigpoError } from "../util/errors.ts"
import { isPlaced, makeFolders, type Place, placeOf, writeRef } from "./cache.ts"
import { type Cached, cachedModel } from "./cached.ts"
import { chooseFiles } from "./choose.ts"
import { refused } from "./errors.ts"
import { fetchFiles } from "./fetch-files.ts"
import { describeFiles } from "./file-info.ts"
import { readListing } from "./listing.ts"
import { folderOf, formatHubName, type HubName, isCommit, parentOf, parseHubName } from "./names.ts"
import type { HubOptions } from "./progress.ts"
import { type Asking, isLost, pauseFor } from "./request.ts"
import { cachedRepositories } from "./scan.ts"
import { hubCache, hubSettings } from "./settings.ts"

/** Default attempts and waiting times of requests to the Hub. */
const usual = { tries: 5, pause: 1000, silence: 30_000, sleep: pauseFor }

/**
 * Returns the local path of a model that is given as a folder or as a name on the Hugging Face Hub: `owner/name`, `owner/name@revision`,
 * and with a GGUF file `owner/name:Q4_K_M` or `owner/name/file.gguf`. An existing local path takes precedence over a name; a text that is
 * not a name is returned unchanged. Missing files are downloaded into the cache of Hugging Face, and their digests are checked.
 *
 * @param patience - attempts and waiting times other than the defaults, for tests.
 * @returns the folder of a snapshot, a GGUF file in it, or the given path
 * @throws GigpoError `HUB_REFUSED` for a model that the Hub refuses, that has no supported format, or that is not in the cache in offline
 * mode; `HUB_LOST` if the Hub cannot be reached; `IO` for a full disk; the reason of the signal
 */
export async function resolveModel(
  nameOrPath: string,
  options: HubOptions = {},
  patience: Partial<typeof usual> = {},
): Promise<string> {
  const name = typeof nameOrPath === "string" ? await nameOf(nameOrPath, options) : undefined
  if (!name) return nameOrPath
  const settings = await hubSettings()
  const onNote = (text: string) => options.onProgress?.({ kind: "note", text })
  const asking = { ...usual, ...patience, settings, name, signal: options.signal, onNote }
  const place = placeOf(settings.cache, name.repository)
  const cached = await cachedModel(place, name, options.weights ?? true)
  if (cached && (settings.offline || isCommit(name.revision))) return cached.path
  if (settings.offline) throw refused(await notCached(asking))
  try {
    return await downloaded(asking, place, options)
  } catch (error) {
    if (!GigpoError.is(error)) throw error
    if (cached && isLost(error)) return usedInstead(cached, asking, error, options)
    throw error.code === "HUB_REFUSED" ? await explained(error, asking, cached) : error
  }
}

/** Parses a name on the Hub; undefined for other texts and for paths that exist. */
export async function nameOf(text: string, { onProgress }: HubOptions = {}): Promise<HubName | undefined> {
  const name = parseHubName(text)
  if (!name) return undefined
  if (await isHere(text)) {
    // A path of two parts is ambiguous if the cache has a model of this name.
    if (onProgress && (await isThere(join(hubCache(), folderOf(name.repository)))))
      onProgress({
        kind: "note",
        text: `The local path ${text} is used, not the model of this name on the Hugging Face Hub.`,
      })
    return undefined
  }
  // If the first part is an existing folder, the text is probably a mistyped path. Names of local folders must not be sent to the Hub.
  const isPlain = name.revision === undefined && (name.gguf === undefined || /\.gguf$/i.test(text))
  return isPlain && (await isThere(parentOf(name))) ? undefined : name
}

async function isHere(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (cause) {
    if (isMissing(cause)) return false
    throw ioError("look at", path, cause)
  }
}

async function downloaded(asking: Asking, place: Place, { onProgress, weights = true }: HubOptions): Promise<string> {
  const { name } = asking
  const listing = await readListing(asking)
  const { commit } = listing
  const { files: chosen, gguf } = chooseFiles(name, listing.files, weights)
  const files = await describeFiles(asking, commit, chosen)
  const placed = await Promise.all(files.map((file) => isPlaced(place, commit, file)))
  const missing = files.filter((_, index) => !placed[index])
  if (missing.length > 0) {
    await makeFolders(place, commit)
    const what = formatHubName({ ...name, revision: commit })
    await fetchFiles(asking, place, { commit, files, missing, what, onProgress })
  }
  await noteRef(place, name.revision ?? "main", commit)
  const folder = join(place.snapshots, commit)
  return gguf === undefined ? folder : join(folder, ...gguf.split("/"))
}

/** Writes a reference and ignores errors: a read-only cache still works. */
async function noteRef(place: Place, revision: string, commit: string): Promise<void> {
  await writeRef(place, revision, commit).catch(() => {})
}

function usedInstead(
  { commit, path }: Cached,
  { name }: Asking,
  error: GigpoError,
  { onProgress }: HubOptions,
): string {
  const text = `${error.message.split(". Try again")[0]}. ${formatHubName({ ...name, revision: commit })} from the cache is used.`
  onProgress?.({ kind: "note", text })
  return path
}

async function notCached({ name, settings }: Asking): Promise<string> {
  const near = await nearest(settings.cache, name.repository)
  return (
    `${formatHubName(name)} is not in the cache ${settings.cache}, or incomplete, and HF_HUB_OFFLINE prevents the download: unset ` +
    `HF_HUB_OFFLINE, or copy the model into the cache.${near}`
  )
}

/** Adds a hint to an error: the commit of the model in the cache, or a cached model with a similar name. */
async function explained(
  error: GigpoError,
  { name, settings }: Asking,
  cached: Cached | undefined,
): Promise<GigpoError> {
  const help = cached
    ? ` The cache has the commit ${cached.commit}: set HF_HUB_OFFLINE=1 to use it.`
    : /no model of this name/.test(error.message)
      ? await nearest(settings.cache, name.repository)
      : ""
  return help === "" ? error : new GigpoError(error.code, `${error.message}${help}`, { cause: error.cause })
}

async function nearest(cache: string, repository: string): Promise<string> {
  const asked = repository.toLowerCase()
  const known = (await cachedRepositories(cache).catch(() => [])).filter((one) => one !== repository)
  const near = known
    .map((one) => ({ one, distance: editDistance(asked, one.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance)[0]
  return near && near.distance <= 3 ? ` Did you mean ${near.one}, which is in the cache?` : ""
}
