import { basename, dirname, extname, join } from "node:path"
import { ioError, isSystemError, isThere } from "../../files/io-error.ts"
import { readLinked } from "../../files/regular-file.ts"
import { without } from "../../options/fixed.ts"
import { isObject, readTable, refusal } from "../../options/read.ts"
import type { RunConfig } from "../../runs/config.ts"
import { dateIn } from "../../runs/date.ts"
import { GigpoError } from "../../util/errors.ts"
import { commandLine } from "../arguments.ts"
import type { Config } from "./config.ts"
import { applySet, type ConfigDocument, parseConfigDocument, type Setting } from "./document.ts"
import { configFields, runConfigFields } from "./fields.ts"
import { loadModules } from "./modules.ts"
import { checkTrusted, type Trust } from "./trust.ts"

/**
 * Reads a configuration file, and loads the modules that it names; see `resolveConfig`.
 *
 * @throws GigpoError `UNTRUSTED` where the file is that of a run of another origin, and asks for more than reading and computing
 */
export async function loadConfig(path: string, sets: readonly Setting[] = [], trust: Trust = {}): Promise<Config> {
  return await loadFile(await readDocument(path, sets), path, trust)
}

/** The same for a file that was read already. */
export async function loadFile(parsed: ConfigDocument, path: string, trust: Trust): Promise<Config> {
  const config = resolveDocument(parsed)
  await checkTrusted(config, parsed, path, trust)
  return await loadModules(config, parsed, dirname(path))
}

/** Bytes of a configuration file. */
const largest = 2 ** 20

/** A configuration file with `sets` put over it. */
export async function readDocument(path: string, sets: readonly Setting[]): Promise<ConfigDocument> {
  let text: string
  try {
    text = await readLinked(path, largest)
  } catch (cause) {
    if (isSystemError(cause) && cause.code === "EISDIR") throw await notAFile(path, cause)
    const { message } = GigpoError.is(cause) ? cause : ioError("read", path, cause)
    throw new GigpoError("BAD_CONFIG", message, { cause })
  }
  const parsed = parseConfigDocument(text, path)
  for (const set of sets) applySet(parsed, set)
  return parsed
}

/** A folder in the place of a configuration file: the one in it is suggested. */
async function notAFile(folder: string, cause: Error): Promise<GigpoError> {
  const names = ["config.yaml", "config.yml", "config.json"].map((name) => join(folder, name))
  const there = await Promise.all(names.map(isThere))
  const found = names.find((_, index) => there[index])
  const way = found === undefined ? "Give a configuration file, YAML or JSON." : `Give its configuration: ${found}.`
  return new GigpoError("BAD_CONFIG", `${folder} is a folder, not a configuration file. ${way}`, { cause })
}

/** The configuration in a document of the user's own, and the modules that it names, from `folder`. */
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
export function resolveConfig(text: string, sets: readonly Setting[] = [], source = "the configuration"): Config {
  const parsed = parseConfigDocument(text, source)
  for (const set of sets) applySet(parsed, set)
  return resolveDocument(parsed)
}

/** The same for a document that is at hand. */
export function resolveDocument({ document, source, where }: ConfigDocument): Config {
  const plain = plainValue(document, source)
  if (isFromCode(plain)) throw fromCode(source)
  const { value, complaints } = readTable(plain, { ...configFields, ...runConfigFields }, "file")
  if (complaints.length > 0) throw refusal("BAD_CONFIG", source, complaints, where)
  const config = without(
    value as unknown as Config & Pick<RunConfig, "gigpo" | "frozen" | "settled" | "resolved" | "promptDate">,
    ...(["gigpo", "frozen", "settled", "resolved", "promptDate"] as const),
  )
  // A run's config.json says the date of its prompts.
  const now = dateIn(value as unknown as RunConfig)
  const chat = now === undefined ? {} : { chat: { variables: config.chat?.variables, now } }
  return { ...config, run: config.run ?? join("runs", nameOf(config)), ...chat }
}

/** Whether a run's configuration was given by a program: those of the command line state their model and environment. */
export function isFromCode(config: unknown): boolean {
  return isObject(config) && typeof config.gigpo === "string" && !(isObject(config.environment) && "model" in config)
}

function fromCode(source: string): GigpoError {
  const run = dirname(source)
  return new GigpoError(
    "BAD_CONFIG",
    `${source} is of a run that a program began (Run.open): it holds that program's options, and names no environment. The program continues ` +
      `with the run (resume: true). "${commandLine("runs", run)}", view, episodes, report, export and serve read the run's folder; to evaluate its model: ` +
      `${commandLine("evaluate", "config.yaml", "--model", run)}, with a configuration of its environment.`,
  )
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
