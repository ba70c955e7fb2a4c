import { join } from "node:path"
import { editDistance } from "../util/edit-distance.ts"
import { GigpoError } from "../util/errors.ts"
import { isPlaced, makeFolders, type Place, placeOf, writeRef } from "./cache.ts"
import { type Cached, cachedModel } from "./cached.ts"
import { chooseFiles } from "./choose.ts"
import { refused } from "./errors.ts"
import { fetchFiles } from "./fetch-files.ts"
import { describeFiles } from "./file-info.ts"
import { readListing } from "./listing.ts"
import { formatHubName, type HubName, isCommit } from "./names.ts"
import type { HubOptions } from "./progress.ts"
import { type HubRequest, isLost, pauseFor } from "./request.ts"
import { cachedRepositories } from "./scan.ts"
import { hubSettings } from "./settings.ts"

/** Default attempts and waiting times of requests to the Hub. */
const usual = { tries: 5, pause: 1000, silence: 30_000, sleep: pauseFor }

/** Attempts and waiting times of requests to the Hub. */
export type Patience = typeof usual

/** Downloads what is missing of a model and returns its path; see `resolveModel`. */
export async function downloadModel(name: HubName, options: HubOptions, patience: Partial<Patience>): Promise<string> {
  const settings = await hubSettings()
  const onNote = (text: string) => options.onProgress?.({ kind: "note", text })
  const hubRequest = { ...usual, ...patience, settings, name, signal: options.signal, onNote }
  const place = placeOf(settings.cache, name.repository)
  const cached = await cachedModel(place, name, options.weights ?? true)
  if (cached && (settings.offline || isCommit(name.revision))) return cached.path
  if (settings.offline) throw refused(await notCached(hubRequest))
  try {
    return await downloaded(hubRequest, place, options)
  } catch (error) {
    if (!GigpoError.is(error)) throw error
    if (cached && isLost(error)) return usedInstead(cached, hubRequest, error, options)
    throw error.code === "HUB_REJECTED" ? await explained(error, hubRequest, cached) : error
  }
}

async function downloaded(
  hubRequest: HubRequest,
  place: Place,
  { onProgress, weights = true }: HubOptions,
): Promise<string> {
  const { name } = hubRequest
  const listing = await readListing(hubRequest)
  const { commit } = listing
  const { files: chosen, gguf } = chooseFiles(name, listing.files, weights)
  const files = await describeFiles(hubRequest, commit, chosen)
  const placed = await Promise.all(files.map((file) => isPlaced(place, commit, file)))
  const missing = files.filter((_, index) => !placed[index])
  if (missing.length > 0) {
    await makeFolders(place, commit)
    const what = formatHubName({ ...name, revision: commit })
    await fetchFiles(hubRequest, place, { commit, files, missing, what, onProgress })
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
  { name }: HubRequest,
  error: GigpoError,
  { onProgress }: HubOptions,
): string {
  const text = `${error.message.split(". Try again")[0]}. ${formatHubName({ ...name, revision: commit })} from the cache is used.`
  onProgress?.({ kind: "note", text })
  return path
}

async function notCached({ name, settings }: HubRequest): Promise<string> {
  const near = await nearest(settings.cache, name.repository)
  return (
    `${formatHubName(name)} is not in the cache ${settings.cache}, or incomplete, and HF_HUB_OFFLINE prevents the download: unset ` +
    `HF_HUB_OFFLINE, or copy the model into the cache.${near}`
  )
}

/** Adds a hint to an error: the commit of the model in the cache, or a cached model with a similar name. */
async function explained(
  error: GigpoError,
  { name, settings }: HubRequest,
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
  const lowerCase = repository.toLowerCase()
  const known = (await cachedRepositories(cache).catch(() => [])).filter((one) => one !== repository)
  const near = known
    .map((one) => ({ one, distance: editDistance(lowerCase, one.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance)[0]
  return near && near.distance <= 3 ? ` Did you mean ${near.one}, which is in the cache?` : ""
}
