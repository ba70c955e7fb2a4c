import { formatBytes } from "../files/format-bytes.ts"
import { refused } from "./errors.ts"
import type { ListedFile } from "./listing.ts"
import { formatHubName, type HubName } from "./names.ts"

/** The files of a repository that are needed. */
export interface Choice<File extends ListedFile = ListedFile> {
  readonly files: readonly File[]
  /** The GGUF file to open, its first part where it is in parts; undefined where the folder is opened. */
  readonly gguf: string | undefined
}

/** Beside the weights: configuration, tokenizer, chat templates. All in the repository's own folder, but for named templates. */
const beside =
  /^[^/]+\.json$|^(tokenizer\.model|merges\.txt|vocab\.[^/]+|[^/]+\.jinja)$|^additional_chat_templates\/[^/]+\.jinja$/
const safetensors = /^[^/]+\.safetensors$/
const pickle = /\.(bin|pt|pth|ckpt|pkl)$/
const gguf = /\.gguf$/i
/** A vision encoder beside a language model, which cannot be opened alone. */
const projector = /(^|\/)mmproj/i
const part = /-(\d{5})-of-(\d{5})\.gguf$/i

/** Names that a message lists. */
const mostShown = 40

/**
 * The files of a model, or of the GGUF file that the name asks for.
 *
 * @param weights - whether the weights are needed, too.
 * @throws GigpoError `HUB_REFUSED` for a repository without weights that can be read, or with several GGUF files of which none is named
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
      `${what} has its weights in pickle files alone, which can run code when they are read and are never read here: ${shown(others)}. ` +
        "Look for a copy of the model with safetensors, or convert it with Python: from_pretrained(name).save_pretrained(folder).",
    )
  throw refused(`${what} has no weights in safetensors or GGUF files: ${shown(files) || "it has no files"}.`)
}

/** Of weights that stand there twice those in transformers' layout. */
function needed<File extends ListedFile>(tensors: readonly File[], files: readonly File[]): readonly File[] {
  const isUsual = files.some(({ path }) => path === "model.safetensors" || path === "model.safetensors.index.json")
  return isUsual ? tensors.filter(({ path }) => !/^consolidated\b/.test(path)) : tensors
}

function named<File extends ListedFile>(files: readonly File[], asked: string): readonly File[] {
  const exact = files.filter(({ path }) => path.toLowerCase() === asked.toLowerCase())
  if (gguf.test(asked)) return partsOf(files, exact)
  const word = asked.replace(/[.+\-*?^${}()|[\]\\]/g, "\\$&")
  const pattern = new RegExp(`(^|[-._/])${word}([-._/]|$)`, "i")
  return files.filter(({ path }) => pattern.test(path))
}

/** All parts of a file that is in parts. */
function partsOf<File extends ListedFile>(files: readonly File[], [one]: readonly File[]): readonly File[] {
  if (!one) return []
  return files.filter(({ path }) => path === one.path || (part.test(path) && stem(path) === stem(one.path)))
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
        ? `${what} has several GGUF files. Name one, as ${what}:${all[0]?.path}, or by a part of its name: ${list}.`
        : `${what} has ${found.length > 0 ? "several GGUF files" : "no GGUF file"} of the name ${name.gguf}: ${list}.`,
    )
  }
  const files = found.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  const count = Number(part.exec(files[0]!.path)?.[2] ?? 1)
  if (files.length !== count)
    throw refused(`${formatHubName(name)} has ${files.length} of the ${count} parts of ${models[0]}.`)
  return { files, gguf: files[0]!.path }
}

function shown(files: readonly ListedFile[]): string {
  const list = files
    .slice(0, mostShown)
    .map(({ path, size }) => (size === undefined ? path : `${path} (${formatBytes(size)})`))
  return [...list, ...(files.length > mostShown ? [`${files.length - mostShown} more`] : [])].join(", ")
}
