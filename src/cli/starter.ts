import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, relative, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { isModuleFile } from "../options/module-path.ts"
import { GigpoError } from "../util/errors.ts"
import { commandLine } from "./arguments.ts"
import { type ConfigDocument, parseConfigDocument } from "./config/document.ts"
import { schemaLine } from "./config/schema.ts"

// The configurations in examples/ are what `gigpo init` starts from: models small enough to be trained on a CPU, from nothing.
const folder = new URL("../../examples/", import.meta.url)

/** Environments that `starterConfig` knows; none where the package came without its examples. */
export function starterNames(): string[] {
  const files = existsSync(folder) ? readdirSync(folder) : []
  return files.filter((name) => name.endsWith(".yaml")).map((name) => name.slice(0, -".yaml".length))
}

/** Whose settings a small model begins with in an environment that has no configuration there. */
const pattern = "sokoban"

/**
 * A first configuration in `directory`, for an environment by its name or by its module's path. Throws `BAD_ARGUMENT` where there is
 * none.
 */
export function starterConfig(environment: string, directory: string): ConfigDocument {
  const own = isModuleFile(environment)
  const names = starterNames()
  if (!own && !names.includes(environment)) {
    throw new GigpoError(
      "BAD_ARGUMENT",
      `${environment} is no environment for a small model made from nothing; those are: ${names.join(", ")}, and modules of ` +
        `your own by their path (./mine.mjs). Use a pretrained model and write a configuration; "${commandLine("config")}" lists its keys.`,
    )
  }
  const text = readFileSync(new URL(`${own ? pattern : environment}.yaml`, folder), "utf8")
  // The comment above the keys tells of examples/; the copy keeps what follows it.
  const copied = `${schemaLine}\n${withPathsTold(text.replace(/^#.*\n/, ""), own)}`
  const parsed = parseConfigDocument(copied, own ? environment : "the starting configuration")
  const { document } = parsed
  document.set("model", join(directory, "model"))
  document.set("run", join(directory, "run"))
  const shipped = String(document.getIn(["environment", "name"]))
  // A module is named from the copy; one of ours lies beside the examples.
  const module = own ? environment : isModuleFile(shipped) ? fileURLToPath(new URL(shipped, folder)) : undefined
  if (module !== undefined)
    document.set("environment", document.createNode({ name: relative(directory, module).replaceAll(sep, "/") }))
  // A program is named from where gigpo runs.
  const program = ["agent", "command", 1]
  if (document.hasIn(program)) {
    const path = fileURLToPath(new URL(String(document.getIn(program)), folder))
    document.setIn(program, relative(process.cwd(), path).replaceAll(sep, "/"))
  }
  if (own) document.deleteIn(["training", "rollout", "maxCompletionTokens"]) // its replies may be longer
  return parsed
}

/** A module of one's own is named from the file, all else from where gigpo is started. */
function withPathsTold(text: string, own: boolean): string {
  const told = "in which gigpo is started."
  return own ? text.replace(told, "in which gigpo is started; that of the environment's module to this file.") : text
}
