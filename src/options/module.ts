import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import { extname, resolve } from "node:path"
import { pathToFileURL } from "node:url"
import { GigpoError } from "../util/errors.ts"
import { ended } from "./display.ts"
import { isClass } from "./own.ts"
import { isObject } from "./read.ts"
import type { CustomValue, OptionFields } from "./table.ts"

// A module of the user. Its default export is the value. Where it also exports `options`, a table made with the constructors of
// field.ts, its default export is a function of these options. The module is trusted: it is run without a sandbox.

/** Loaded module of the user. */
export interface Module {
  /** Absolute path of the file. */
  readonly path: string
  /** SHA-256 of the file in hexadecimal. Imported files are not included. */
  readonly sha256: string
  /** Default export. */
  readonly exported: unknown
  /** Exported table of options, if any. */
  readonly options: OptionFields | undefined
  /** Export `expert`, if any: what completes the calls of the module's agent for `gigpo sft`. */
  readonly expert: unknown
}

/**
 * Loads a module. A module is evaluated once per process.
 *
 * @param path - path relative to `folder`.
 * @throws GigpoError `BAD_CONFIG` for a module that does not exist, that this Node cannot load, that throws, that has no default export,
 * or whose `options` are not a table.
 */
export async function loadModule(path: string, folder: string): Promise<Module> {
  const file = resolve(folder, path)
  const sha256 = createHash("sha256")
    .update(await readModule(file))
    .digest("hex")
  checkLanguage(file)
  const exports = await importModule(file)
  if (!("default" in exports) || exports.default === undefined)
    throw bad(`${file} has no default export. Add one: export default …`)
  const { default: exported, options, expert } = exports
  if (options !== undefined && !isTable(options)) {
    throw bad(
      `${file} exports options that are not a table. Make each option with a constructor: fields.number(1, "Description.").`,
    )
  }
  if (options !== undefined && (typeof exported !== "function" || isClass(exported)))
    throw bad(
      `${file} exports options, so its default export must be a function of them${isClass(exported) ? ", not a class" : ""}.`,
    )
  return { path: file, sha256, exported, options, expert }
}

/**
 * Returns the custom value of a module, made with its options.
 *
 * @throws GigpoError `BAD_CONFIG` for a value that `own` rejects, and where the default export throws.
 */
export async function makeCustom<T>(module: Module, options: object, own: CustomValue<T>): Promise<T> {
  const { path, exported } = module
  const value: unknown = module.options ? await make(path, exported as (options: object) => unknown, options) : exported
  const wrong = own.validate(value)
  if (wrong === undefined) return value as T
  throw bad(ended(`${path}: ${module.options ? "the result of its default export" : "its default export"} ${wrong}`))
}

async function make(path: string, factory: (options: object) => unknown, options: object): Promise<unknown> {
  try {
    return await factory(options)
  } catch (cause) {
    if (GigpoError.is(cause)) throw cause
    throw bad(`${path}: its default export threw: ${reasonOf(cause)}`, cause)
  }
}

async function readModule(file: string): Promise<Buffer> {
  try {
    return await readFile(file)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw bad(`Could not read the module ${file}: ${code === "ENOENT" ? "it does not exist" : reasonOf(cause)}.`, cause)
  }
}

function checkLanguage(file: string): void {
  if (![".ts", ".mts", ".cts"].includes(extname(file))) return
  const { typescript } = process.features as { readonly typescript?: unknown }
  if (typescript) return
  throw bad(
    `${file} is TypeScript, which Node ${process.version} does not run: use Node 22.18 or later, or write the module in ` +
      "JavaScript (.mjs).",
  )
}

async function importModule(file: string): Promise<Record<string, unknown>> {
  try {
    return await import(pathToFileURL(file).href)
  } catch (cause) {
    throw bad(`The module ${file} threw while it was loaded: ${reasonOf(cause)}`, cause)
  }
}

function isTable(value: unknown): value is OptionFields {
  const isEntry = (entry: unknown) =>
    isObject(entry) &&
    typeof entry.help === "string" &&
    ("validate" in entry || "fields" in entry || "variants" in entry)
  return isObject(value) && Object.values(value).every(isEntry)
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}

function bad(message: string, cause?: unknown): GigpoError {
  return new GigpoError("BAD_CONFIG", message, { cause })
}
