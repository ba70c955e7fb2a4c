import { stat } from "node:fs/promises"
import { join } from "node:path"
import { ioError, isMissing, isThere } from "../files/io-error.ts"
import type { Patience } from "./download-model.ts"
import { folderOf, type HubName, parentOf, parseHubName } from "./names.ts"
import type { HubOptions } from "./progress.ts"
import { hubCache } from "./settings.ts"

/**
 * Returns the local path of a model that is given as a folder or as a name on the Hugging Face Hub: `owner/name`, `owner/name@revision`,
 * and with a GGUF file `owner/name:Q4_K_M` or `owner/name/file.gguf`. An existing local path takes precedence over a name; a text that is
 * not a name is returned unchanged. Missing files are downloaded into the cache of Hugging Face, and their digests are checked.
 *
 * @param patience - attempts and waiting times other than the defaults, for tests.
 * @returns the folder of a snapshot, a GGUF file in it, or the given path
 * @throws GigpoError `HUB_REJECTED` for a model that the Hub rejects, that has no supported format, or that is not in the cache in offline
 * mode; `HUB_LOST` if the Hub cannot be reached; `IO` for a full disk; the reason of the signal
 */
export async function resolveModel(
  nameOrPath: string,
  options: HubOptions = {},
  patience: Partial<Patience> = {},
): Promise<string> {
  const name = typeof nameOrPath === "string" ? await nameOf(nameOrPath, options) : undefined
  if (!name) return nameOrPath
  const { downloadModel } = await import("./download-model.ts")
  return await downloadModel(name, options, patience)
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
