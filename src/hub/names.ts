import { sep } from "node:path"

/** Name of a model on the Hugging Face Hub, as the user gave it. */
export interface HubName {
  /** owner/name */
  readonly repository: string
  /** Branch, tag or commit. Undefined stands for main. */
  readonly revision: string | undefined
  /** Path of a GGUF file in the repository, or a part of its name (Q4_K_M). */
  readonly gguf: string | undefined
}

const owner = "[A-Za-z0-9](?:[A-Za-z0-9]|[._-](?=[A-Za-z0-9])){0,95}"
const repository = String.raw`${owner}/[A-Za-z0-9_](?:\w|[.-](?![.-])){0,95}`
const path = String.raw`[\w.+-]+(?:/[\w.+-]+)*`
const pattern = new RegExp(`^(${repository})(?:@(${path}))?(?::(${path}))?$`)
const withFile = new RegExp(`^(${repository})/(${path}\\.gguf)$`, "i")

/**
 * Parses the name of a model on the Hub: `owner/name`, `owner/name@revision`, and with a GGUF file `owner/name:Q4_K_M` or
 * `owner/name/file.gguf`. Undefined for any other text. The file system is not read.
 */
export function parseHubName(text: string): HubName | undefined {
  const [, ofFile, file] = withFile.exec(text) ?? []
  const [, found = ofFile, revision, gguf = file] = pattern.exec(text) ?? []
  if (found === undefined || [revision, gguf].some(climbs)) return undefined
  // A text such as models/x.gguf is the path of a file.
  if (/\.(gguf|json|ya?ml|safetensors)$/i.test(found)) return undefined
  return { repository: found, revision, gguf }
}

function climbs(path: string | undefined): boolean {
  return path?.split("/").some((part) => /^\.+$/.test(part)) ?? false
}

export function formatHubName({ repository, revision, gguf }: HubName): string {
  return `${repository}${revision === undefined ? "" : `@${revision}`}${gguf === undefined ? "" : `:${gguf}`}`
}

/** Whether a revision is a commit. Unlike a branch or tag, a commit never changes its content. */
export function isCommit(revision: string | undefined): revision is string {
  return revision !== undefined && /^[0-9a-f]{40}$/.test(revision)
}

/** Returns the folder name of a repository in the cache: models--owner--name. */
export function folderOf(repository: string): string {
  return `models--${repository.replace("/", "--")}`
}

/** Returns the owner/name of a folder in the cache; undefined for other folders. */
export function repositoryOf(folder: string): string | undefined {
  const [, owner, name] = /^models--(.+?)--(.+)$/.exec(folder) ?? []
  if (owner === undefined) return undefined
  const repository = `${owner}/${name}`
  return parseHubName(repository)?.repository === repository ? repository : undefined
}

/**
 * Returns `owner/name@commit` (with `:file.gguf` for a file) for a path in the cache, derived from the path alone; undefined for other
 * paths.
 */
export function hubNameOf(path: string): string | undefined {
  const parts = path.replace(/[/\\]+$/, "").split(sep)
  const at = parts.lastIndexOf("snapshots")
  const [commit, ...file] = parts.slice(at + 1)
  const repository = at > 0 ? repositoryOf(parts[at - 1]!) : undefined
  if (repository === undefined || !isCommit(commit)) return undefined
  return formatHubName({ repository, revision: commit, gguf: file.length > 0 ? file.join("/") : undefined })
}

/** Returns the parent folder of a name when read as a path. */
export function parentOf({ repository }: HubName): string {
  return repository.split("/")[0]!
}
