import { hashFile, readWritten } from "../files/manifest.ts"
import { copiedName, templateFolder, tokenizerFiles } from "../model-files/copied-files.ts"
import { GigpoError } from "../util/errors.ts"

/**
 * Checks that the tokenizer files are those of a checkpoint: with others, token ids and prompts would differ from those of the training.
 * Tokenizers without files and checkpoints without a tokenizer are not compared.
 *
 * @param files - full paths of the tokenizer files.
 * @throws GigpoError `BAD_CONFIG` with the name of each file that differs.
 */
export async function checkSameTokenizer(directory: string, files: readonly string[] = []): Promise<void> {
  const now = new Map(files.map((path) => [copiedName(path), path]))
  const written = await readWritten(directory)
  const isTokenizers = (name: string) =>
    now.has(name) || tokenizerFiles.includes(name) || name.startsWith(`${templateFolder}/`)
  const kept = new Map(written?.files.filter(({ name }) => isTokenizers(name)).map((file) => [file.name, file.sha256]))
  if (now.size === 0 || kept.size === 0) return
  const changes: string[] = []
  for (const name of new Set([...kept.keys(), ...now.keys()])) {
    const path = now.get(name)
    if (path === undefined) changes.push(`${name} is missing`)
    else if (!kept.has(name)) changes.push(`${path} was added`)
    else if ((await hashFile(path)) !== kept.get(name)) changes.push(`${path} has changed (its SHA-256 differs)`)
  }
  if (changes.length === 0) return
  throw new GigpoError(
    "BAD_CONFIG",
    `The tokenizer is not the one that the checkpoint ${directory} was written with: ${changes.join("; ")}. To resume the run, ` +
      "restore its files from the copies in the checkpoint; or fork the run into a new folder.",
  )
}
