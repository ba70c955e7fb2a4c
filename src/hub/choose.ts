import { formatBytes } from "../files/format-bytes.ts"
import { refused } from "./errors.ts"
import type { ListedFile } from "./listing.ts"
import { formatHubName, type HubName } from "./names.ts"

/** Files of a repository that are needed to open a model. */
export interface Choice<File extends ListedFile = ListedFile> {
  readonly files: readonly File[]
  /** GGUF file to open (the first part of a split file); undefined if the folder is opened. */
  readonly gguf: string | undefined
}

/** Configuration, tokenizer and chat templates. All are in the root folder of the repository, except named templates. */
const beside =
  /^[^/]+\.json$|^(tokenizer\.model|merges\.txt|vocab\.[^/]+|[^/]+\.jinja)$|^additional_chat_templates\/[^/]+\.jinja$/
const safetensors = /^[^/]+\.safetensors$/
const pickle = /\.(bin|pt|pth|ckpt|pkl)$/
const gguf = /\.gguf$/i
/** Vision encoder of a language model, which cannot be opened without that model. */
const projector = /(^|\/)mmproj/i
const part = /-(\d{5})-of-(\d{5})\.gguf$/i

/** Maximum number of file names in a message. */
const mostShown = 40

/**
 * Returns the files of a model, or those of the GGUF file in the name.
 *
 * @param weights - whether the weights are needed, too.
 * @throws GigpoError `HUB_REJECTED` for a repository without weights in a supported format, or where several GGUF files match the name
 */
export function chooseFiles<File extends ListedFile>(
  name: HubName,
  files: readonly File[],
  weights: boolean,
): Choice<File> {
  const ggufs = files.filter(({ path }) => gguf.test(path) && !projector.test(path))
  if (name.gguf !== undefined) return ggufChoice(name, ggufs, named(ggufs, name.gguf))
  const small = files.filter(({ path }) => beside.test(path))
  const tensors = files.filter(({ path }) => safetensors.test(path))
  if (tensors.length > 0 || (!weights && small.some(({ path }) => /^(tokenizer_)?config\.json$/.test(path))))
    return { files: weights ? [...small, ...needed(tensors, files)] : small, gguf: undefined }
  if (ggufs.length > 0) return ggufChoice(name, ggufs, ggufs)
  const others = files.filter(({ path }) => pickle.test(path))
  const what = formatHubName(name)
  if (others.length > 0)
    throw refused(
      `${what} has weights only in pickle files, which can run code when they are loaded and are not supported: ${shown(others)}. ` +
        "Use a copy of the model with safetensors, or convert it with Python: from_pretrained(name).save_pretrained(folder).",
    )
  throw refused(`${what} has no weights in safetensors or GGUF files: ${shown(files) || "it has no files"}.`)
}

/** Returns the weights to download. Where a repository also has a consolidated copy, only those in transformers' layout. */
function needed<File extends ListedFile>(tensors: readonly File[], files: readonly File[]): readonly File[] {
  const isUsual = files.some(({ path }) => path === "model.safetensors" || path === "model.safetensors.index.json")
  return isUsual ? tensors.filter(({ path }) => !/^consolidated\b/.test(path)) : tensors
}

function named<File extends ListedFile>(files: readonly File[], requested: string): readonly File[] {
  const exact = files.filter(({ path }) => path.toLowerCase() === requested.toLowerCase())
  if (gguf.test(requested)) return partsOf(files, exact)
  const word = requested.replace(/[.+\-*?^${}()|[\]\\]/g, "\\$&")
  const pattern = new RegExp(`(^|[-._/])${word}([-._/]|$)`, "i")
  return files.filter(({ path }) => pattern.test(path))
}

/** Returns a file with the other parts, if it is split. */
function partsOf<File extends ListedFile>(files: readonly File[], [one]: readonly File[]): readonly File[] {
  if (!one) return []
  return files.filter(({ path }) => path === one.path || (part.test(path) && stem(path) === stem(one.path)))
}

/** Returns the GGUF files among paths that are models, by their first parts. */
export function ggufModels(paths: readonly string[]): string[] {
  const models = paths.filter((path) => gguf.test(path) && !projector.test(path)).sort()
  return models.filter((path, i) => i === 0 || stem(path) !== stem(models[i - 1]!))
}

const stem = (path: string) => path.replace(part, ".gguf")

function ggufChoice<File extends ListedFile>(
  name: HubName,
  all: readonly File[],
  found: readonly File[],
): Choice<File> {
  const models = [...new Set(found.map(({ path }) => stem(path)))]
  if (models.length !== 1) {
    const what = formatHubName({ ...name, gguf: undefined })
    const list = shown(found.length > 0 ? found : all) || "it has none"
    throw refused(
      name.gguf === undefined
        ? `${what} has several GGUF files. Name one, such as ${what}:${all[0]?.path}, or give a part of its name: ${list}.`
        : `${what} has ${found.length > 0 ? "several GGUF files" : "no GGUF file"} matching the name ${name.gguf}: ${list}.`,
    )
  }
  const files = found.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  const count = Number(part.exec(files[0]!.path)?.[2] ?? 1)
  if (files.length !== count)
    throw refused(`${formatHubName(name)} has only ${files.length} of the ${count} parts of ${models[0]}.`)
  return { files, gguf: files[0]!.path }
}

function shown(files: readonly ListedFile[]): string {
  const list = files
    .slice(0, mostShown)
    .map(({ path, size }) => (size === undefined ? path : `${path} (${formatBytes(size)})`))
  return [...list, ...(files.length > mostShown ? [`${files.length - mostShown} more`] : [])].join(", ")
}
