import { sep } from "node:path"

/** A model on the Hugging Face Hub, as it was asked for. */
export interface HubName {
  /** owner/name */
  readonly repository: string
  /** Branch, tag or commit; undefined where none was named: then it is main. */
  readonly revision: string | undefined
  /** A GGUF file of the repository (its path), or a part of one's name (Q4_K_M); undefined where none was named. */
  readonly gguf: string | undefined
}

const owner = "[A-Za-z0-9](?:[A-Za-z0-9]|[._-](?=[A-Za-z0-9])){0,95}"
const repository = String.raw`${owner}/[A-Za-z0-9_](?:\w|[.-](?![.-])){0,95}`
const path = String.raw`[\w.+-]+(?:/[\w.+-]+)*`
const pattern = new RegExp(`^(${repository})(?:@(${path}))?(?::(${path}))?$`)
const withFile = new RegExp(`^(${repository})/(${path}\\.gguf)$`, "i")

/**
 * Name of a model on the Hub: `owner/name`, `owner/name@revision`, and with a GGUF file `owner/name:Q4_K_M` or `owner/name/file.gguf`.
 * Undefined for any other text. Looks at no folder.
 */
export function parseHubName(text: string): HubName | undefined {
  const [, ofFile, file] = withFile.exec(text) ?? []
  const [, found = ofFile, revision, gguf = file] = pattern.exec(text) ?? []
  if (found === undefined || [revision, gguf].some(climbs)) return undefined
  // models/x.gguf is a file.
  if (/\.(gguf|json|ya?ml|safetensors)$/i.test(found)) return undefined
  return { repository: found, revision, gguf }
}

function climbs(path: string | undefined): boolean {
  return path?.split("/").some((part) => /^\.+$/.test(part)) ?? false
}

export function formatHubName({ repository, revision, gguf }: HubName): string {
  return `${repository}${revision === undefined ? "" : `@${revision}`}${gguf === undefined ? "" : `:${gguf}`}`
}

/** Whether a revision is a commit, which never stands for another one later. */
export function isCommit(revision: string | undefined): revision is string {
  return revision !== undefined && /^[0-9a-f]{40}$/.test(revision)
}

/** Folder of a repository in the cache: models--owner--name. */
export function folderOf(repository: string): string {
  return `models--${repository.replace("/", "--")}`
}

/** owner/name of a folder in the cache; undefined for other folders. */
export function repositoryOf(folder: string): string | undefined {
  const [, owner, name] = /^models--(.+?)--(.+)$/.exec(folder) ?? []
  if (owner === undefined) return undefined
  const repository = `${owner}/${name}`
  return parseHubName(repository)?.repository === repository ? repository : undefined
}

/**
 * `owner/name@commit` (with `:file.gguf` for a file) of a path in the cache, derived from the path alone; undefined for other paths.
 */
export function hubNameOf(path: string): string | undefined {
  const parts = path.replace(/[/\\]+$/, "").split(sep)
  const at = parts.lastIndexOf("snapshots")
  const [commit, ...file] = parts.slice(at + 1)
  const repository = at > 0 ? repositoryOf(parts[at - 1]!) : undefined
  if (repository === undefined || !isCommit(commit)) return undefined
  return formatHubName({ repository, revision: commit, gguf: file.length > 0 ? file.join("/") : undefined })
}

/** Folder that a name would lie in, were it a path. */
export function parentOf({ repository }: HubName): string {
  return repository.split("/")[0]!
}
