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
 * Reads a configuration file and loads its modules; see `resolveConfig`.
 *
 * @throws GigpoError `UNTRUSTED` if the file belongs to a run from elsewhere and asks for more than reading and
 * computing
 */
export async function loadConfig(path: string, sets: readonly Setting[] = [], trust: Trust = {}): Promise<Config> {
  return await loadFile(await readDocument(path, sets), path, trust)
}

/** Loads a configuration file that has been read; see `loadConfig`. */
export async function loadFile(parsed: ConfigDocument, path: string, trust: Trust): Promise<Config> {
  const config = resolveDocument(parsed)
  await checkTrusted(config, parsed, path, trust)
  return await loadModules(config, parsed, dirname(path))
}

/** Maximum size of a configuration file, in bytes. */
const largest = 2 ** 20

/** Reads a configuration file and applies `sets`. */
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

/** Error for a folder in place of a configuration file, which suggests the file in it. */
async function notAFile(folder: string, cause: Error): Promise<GigpoError> {
  const names = ["config.yaml", "config.yml", "config.json"].map((name) => join(folder, name))
  const there = await Promise.all(names.map(isThere))
  const found = names.find((_, index) => there[index])
  const way = found === undefined ? "Give a configuration file, YAML or JSON." : `Give its configuration: ${found}.`
  return new GigpoError("BAD_CONFIG", `${folder} is a folder, not a configuration file. ${way}`, { cause })
}

/** Loads a document of the user's own; module paths are relative to `folder`. */
export async function loadDocument(parsed: ConfigDocument, folder: string): Promise<Config> {
  return await loadModules(resolveDocument(parsed), parsed, folder)
}

/**
 * Resolves a configuration from YAML: applies `sets` (`training.iterations=20`) and fills in every default.
 *
 * @param source - name of the text in messages.
 * @throws GigpoError `BAD_CONFIG` that lists every unknown key, with the most similar known one, and every value of a
 * wrong type or range, with line numbers.
 */
export function resolveConfig(text: string, sets: readonly Setting[] = [], source = "the configuration"): Config {
  const parsed = parseConfigDocument(text, source)
  for (const set of sets) applySet(parsed, set)
  return resolveDocument(parsed)
}

/** Resolves a parsed document; see `resolveConfig`. */
export function resolveDocument({ document, source, where }: ConfigDocument): Config {
  const plain = plainValue(document, source)
  if (isFromCode(plain)) throw fromCode(source)
  const { value, complaints } = readTable(plain, { ...configFields, ...runConfigFields }, "file")
  if (complaints.length > 0) throw refusal("BAD_CONFIG", source, complaints, where)
  const config = without(
    value as unknown as Config & Pick<RunConfig, "gigpo" | "frozen" | "settled" | "resolved" | "promptDate">,
    ...(["gigpo", "frozen", "settled", "resolved", "promptDate"] as const),
  )
  // The config.json of a run contains the date of its prompts.
  const now = dateIn(value as unknown as RunConfig)
  const chat = now === undefined ? {} : { chat: { variables: config.chat?.variables, now } }
  return { ...config, run: config.run ?? join("runs", nameOf(config)), ...chat }
}

/**
 * Whether the config.json belongs to a run started from code. Runs of the command line store model and environment.
 */
export function isFromCode(config: unknown): boolean {
  return isObject(config) && typeof config.gigpo === "string" && !(isObject(config.environment) && "model" in config)
}

function fromCode(source: string): GigpoError {
  const run = dirname(source)
  return new GigpoError(
    "BAD_CONFIG",
    `${source} belongs to a run started from code (Run.open): it holds the options of that program and names no environment. The program resumes ` +
      `the run (resume: true). "${commandLine("runs", run)}", view, episodes, report, export and serve read the run folder; to evaluate its model: ` +
      `${commandLine("evaluate", "config.yaml", "--model", run)}, with a configuration that names the environment.`,
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
    // YAML aliases that expand to far more than the file.
    throw new GigpoError("BAD_CONFIG", `${source}: ${(cause as Error).message}.`, { cause })
  }
}
