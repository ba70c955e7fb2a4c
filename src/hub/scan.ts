import { readdir, stat } from "node:fs/promises"
import { join } from "node:path"
import { ioError, isMissing } from "../files/io-error.ts"
import { filesOf, type Place, placeOf, readRef } from "./cache.ts"
import { isCommit, repositoryOf } from "./names.ts"

/** Commit of a model in the cache. */
export interface CachedCommit {
  /** Repository as owner/name. */
  readonly repository: string
  readonly commit: string
  /** Branches and tags that pointed to the commit at the last request. */
  readonly refs: readonly string[]
  /** Folder of the snapshot. */
  readonly path: string
  /** Size of the files in bytes. Commits of one model share equal files. */
  readonly bytes: number
  /** Paths of the files, with slashes. */
  readonly files: readonly string[]
  /** Time of the last change, in milliseconds since 1970. */
  readonly changed: number
}

/** Returns the names of the repositories with a folder in the cache. */
export async function cachedRepositories(cache: string): Promise<string[]> {
  return (await namesOf(cache)).flatMap((name) => repositoryOf(name) ?? []).sort()
}

/** Returns every commit of every model in the cache, sorted by name. */
export async function scanCache(cache: string): Promise<CachedCommit[]> {
  const found: CachedCommit[] = []
  for (const repository of await cachedRepositories(cache)) {
    const place = placeOf(cache, repository)
    const refs = await refsOf(place)
    for (const commit of (await namesOf(place.snapshots)).filter(isCommit)) {
      const path = join(place.snapshots, commit)
      const files = await filesOf(place, commit)
      found.push({
        ...{ repository, commit, path },
        refs: refs.filter(([, of]) => of === commit).map(([name]) => name),
        bytes: files.reduce((sum, { size }) => sum + size, 0),
        files: files.map((file) => file.path).sort(),
        changed: (await stat(path)).mtimeMs,
      })
    }
  }
  return found
}

/** Returns branches and tags with their commits. Names with slashes are stored in folders. */
async function refsOf(place: Place, prefix = "", depth = 3): Promise<[name: string, commit: string][]> {
  const found: [string, string][] = []
  for (const name of await namesOf(join(place.refs, prefix))) {
    const commit = await readRef(place, `${prefix}${name}`).catch(() => undefined)
    if (commit !== undefined) found.push([`${prefix}${name}`, commit])
    else if (depth > 0) found.push(...(await refsOf(place, `${prefix}${name}/`, depth - 1)))
  }
  return found
}

async function namesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (cause) {
    if (isMissing(cause)) return []
    throw ioError("read", folder, cause)
  }
}
