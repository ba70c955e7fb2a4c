import { readFile } from "node:fs/promises"
import { basename, dirname, extname, join } from "node:path"
import { GigpoError } from "../../errors.ts"
import { ioError } from "../../files/io-error.ts"
import { without } from "../../options/fixed.ts"
import { readTable, refusal } from "../../options/read.ts"
import type { RunConfig } from "../../training/run-config.ts"
import type { Config } from "./config.ts"
import { applySet, type ConfigDocument, parseConfigDocument } from "./document.ts"
import { configFields, runConfigFields } from "./fields.ts"
import { loadModules } from "./modules.ts"

/** Reads a configuration file, and the modules that it names; see `resolveConfig`. */
export async function loadConfig(path: string, sets: readonly string[] = []): Promise<Config> {
  return await loadDocument(await readDocument(path, sets), dirname(path))
}

/** A configuration file with `sets` put over it. */
export async function readDocument(path: string, sets: readonly string[]): Promise<ConfigDocument> {
  let text: string
  try {
    text = await readFile(path, "utf8")
  } catch (cause) {
    throw new GigpoError("BAD_CONFIG", ioError("read", path, cause).message, { cause })
  }
  const parsed = parseConfigDocument(text, path)
  for (const set of sets) applySet(parsed, set)
  return parsed
}

/** The configuration in a document, and the modules that it names, from `folder`. */
export async function loadDocument(parsed: ConfigDocument, folder: string): Promise<Config> {
  return await loadModules(resolveDocument(parsed), parsed, folder)
}

/**
 * A configuration from YAML, with `sets` (`training.iterations=20`) put over it and every default filled in.
 *
 * @param source - what the text is called in messages.
 * @throws GigpoError `BAD_CONFIG` that names every unknown key, with the one that was probably meant, and every value of a
 * wrong type or range, with their lines.
 */
export function resolveConfig(text: string, sets: readonly string[] = [], source = "the configuration"): Config {
  const parsed = parseConfigDocument(text, source)
  for (const set of sets) applySet(parsed, set)
  return resolveDocument(parsed)
}

/** The same for a document that is at hand. */
export function resolveDocument({ document, source, where }: ConfigDocument): Config {
  const { value, complaints } = readTable(plainValue(document, source), { ...configFields, ...runConfigFields }, "file")
  if (complaints.length > 0) throw refusal("BAD_CONFIG", source, complaints, where)
  const config = without(
    value as unknown as Config & Pick<RunConfig, "gigpo" | "frozen" | "settled">,
    "gigpo",
    "frozen",
    "settled",
  )
  return { ...config, run: config.run ?? join("runs", nameOf(config)) }
}

function nameOf({ environment }: Config): string {
  const { name, use } = environment as { readonly name?: string; readonly use?: string }
  return name ?? basename(use!, extname(use!))
}

function plainValue(document: ConfigDocument["document"], source: string): unknown {
  try {
    return document.toJS() ?? {}
  } catch (cause) {
    // Aliases that unfold to far more than the file.
    throw new GigpoError("BAD_CONFIG", `${source}: ${(cause as Error).message}.`, { cause })
  }
}
