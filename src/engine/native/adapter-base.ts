import { join } from "node:path"
import { isThere } from "../../files/io-error.ts"
import { parseHubName } from "../../hub/names.ts"
import type { HubOptions } from "../../hub/progress.ts"
import { nameOf, resolveModel } from "../../hub/resolve-model.ts"
import { isAdapterFolder, placeOfBase, readAdapterConfig, type StoredAdapter } from "../../model-files/adapter-files.ts"
import { isGguf } from "../../model-files/gguf/is-gguf.ts"
import { GigpoError } from "../../util/errors.ts"

interface BaseOptions extends HubOptions {
  /** Folder or name of the base model, if it is no longer at the path that the adapter names. */
  readonly given?: string | undefined
}

/**
 * Returns the folder of an adapter's base model. A model that is not on this machine is downloaded by its name on the Hub.
 *
 * @throws GigpoError `BAD_MODEL` if no base model is found; the errors of `resolveModel`
 */
export async function findBase(
  directory: string,
  stored: StoredAdapter,
  { given, ...options }: BaseOptions,
): Promise<string> {
  const named = () => given && resolveModel(given, options)
  for (const place of [() => stored.base, named, () => placeOfBase(directory)]) {
    const folder = await place()
    if (folder !== undefined && (await isModel(folder))) return folder
  }
  const name = await nameOfBase(stored)
  if (name !== undefined) return await resolveModel(name, options)
  const { base } = stored
  const where = base === undefined ? "names no base model" : `names the base model ${base}, which does not exist`
  throw new GigpoError(
    "BAD_MODEL",
    `The adapter in ${directory} ${where}. Pass the model's folder as base, or set it in adapter_config.json.`,
  )
}

/** Returns the name on the Hub of an adapter's base model; undefined for other folders, and where the model is on this machine. */
export async function hubBaseOf(directory: string): Promise<string | undefined> {
  if (!(await isAdapterFolder(directory))) return undefined
  const stored = await readAdapterConfig(directory)
  const place = await placeOfBase(directory)
  const isHere = place !== undefined && (await isModel(place))
  return isHere ? undefined : await nameOfBase(stored)
}

async function isModel(path: string): Promise<boolean> {
  return (await isThere(join(path, "config.json"))) || (await isGguf(path))
}

/** Returns the name of the base model with the revision that PEFT stores; undefined if it is not a name on the Hub. */
async function nameOfBase({ base, json }: StoredAdapter): Promise<string | undefined> {
  if (base === undefined || !(await nameOf(base))) return undefined
  const { revision } = json
  return typeof revision === "string" && parseHubName(`${base}@${revision}`) ? `${base}@${revision}` : base
}
