import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { GigpoError } from "../../errors.ts"
import { ioError } from "../../files/io-error.ts"
import type { Config } from "./config.ts"
import { applySet, type ConfigDocument, parseConfigDocument } from "./document.ts"
import { explainIssue } from "./explain.ts"
import { configSchema } from "./schema.ts"

/** Reads a configuration file; see `resolveConfig`. */
export async function loadConfig(path: string, sets: readonly string[] = []): Promise<Config> {
  let text: string
  try {
    text = await readFile(path, "utf8")
  } catch (cause) {
    throw new GigpoError("BAD_CONFIG", ioError("read", path, cause).message, { cause })
  }
  return resolveConfig(text, sets, path)
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
  const value = plainValue(document, source)
  const result = configSchema.safeParse(value)
  if (result.success) {
    const { gigpo: _, ...config } = result.data
    return { ...config, run: config.run ?? join("runs", config.environment.name) }
  }
  const complaints = result.error.issues.flatMap((issue) => explainIssue(issue, value))
  const lines = complaints.map(({ path, text }) => `${where(path)}: ${text}`)
  throw new GigpoError(
    "BAD_CONFIG",
    lines.length === 1 ? lines[0]! : `${source} has ${lines.length} mistakes.\n${lines.join("\n")}`,
  )
}

function plainValue(document: ConfigDocument["document"], source: string): unknown {
  try {
    return document.toJS() ?? {}
  } catch (cause) {
    // Aliases that unfold to far more than the file.
    throw new GigpoError("BAD_CONFIG", `${source}: ${(cause as Error).message}.`, { cause })
  }
}
