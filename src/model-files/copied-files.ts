import { copyFile, mkdir, realpath, stat } from "node:fs/promises"
import { basename, dirname, join, relative, sep } from "node:path"
import { hubFile } from "../files/inside.ts"
import { io } from "../files/io-error.ts"
import { specialError } from "../files/regular-file.ts"
import { GigpoError } from "../util/errors.ts"

/** Folder of named chat templates beside chat_template.jinja. Its files keep their folder when they are copied. */
export const templateFolder = "additional_chat_templates"

/** Files that make a tokenizer and its prompts, beside the named chat templates. */
export const tokenizerFiles: readonly string[] = [
  "tokenizer.json",
  "tokenizer_config.json",
  "chat_template.jinja",
  "special_tokens_map.json",
  "added_tokens.json",
  "vocab.json",
  "merges.txt",
  "generation_config.json",
]

/** Name of a tokenizer's file within the folder of a saved model. */
export function copiedName(file: string): string {
  const folder = basename(dirname(file))
  return folder === templateFolder ? `${folder}/${basename(file)}` : basename(file)
}

/**
 * Refuses files that must not be copied out of their model folder: links to files elsewhere: the one who made the folder may have no right to read them.
 * Links within the folder, and those of the Hugging Face hub's cache, are copied as files.
 *
 * @returns the files that hold the contents
 * @throws GigpoError `UNSAFE_PATH`, `IO`
 */
export async function checkCopied(files: readonly string[] = []): Promise<string[]> {
  return await Promise.all(files.map(sourceOf))
}

async function sourceOf(file: string): Promise<string> {
  const above = dirname(file)
  const folder = basename(above) === templateFolder ? dirname(above) : above
  const [source, own] = await io("read", file, Promise.all([realpath(file), realpath(folder)]))
  const way = relative(own, source)
  if ((way === ".." || way.startsWith(`..${sep}`)) && (await hubFile(folder, file)) === undefined)
    throw new GigpoError(
      "UNSAFE_PATH",
      `${file} is a link to a file outside of the model's folder, which is not copied into another folder. Put a copy of the file in ` +
        "the place of the link (cp -L).",
    )
  if (!(await io("read", source, stat(source))).isFile()) throw specialError(file)
  return source
}

/** Copies a tokenizer's files into the folder of a saved model. Throws as `checkCopied`, and as `fs.copyFile`. */
export async function copyInto(directory: string, files: readonly string[] = []): Promise<void> {
  const sources = await checkCopied(files)
  for (const [at, file] of files.entries()) {
    const target = join(directory, copiedName(file))
    await mkdir(dirname(target), { recursive: true })
    await copyFile(sources[at]!, target)
  }
}
