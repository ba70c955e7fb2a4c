import { existsSync, readdirSync, readFileSync } from "node:fs"
import { GigpoError } from "../errors.ts"
import { commandLine } from "./arguments.ts"
import { type ConfigDocument, parseConfigDocument } from "./config/document.ts"

// The configurations in examples/ are what `gigpo init` starts from: models small enough to be trained on a CPU, from nothing.
const folder = new URL("../../examples/", import.meta.url)

/** Environments that `starterConfig` knows; none where the package came without its examples. */
export function starterNames(): string[] {
  const files = existsSync(folder) ? readdirSync(folder) : []
  return files.filter((name) => name.endsWith(".yaml")).map((name) => name.slice(0, -".yaml".length))
}

/** A first configuration for an environment, with these paths in it. Throws `BAD_ARGUMENT` where there is none. */
export function starterConfig(environment: string, model: string, run: string): ConfigDocument {
  const names = starterNames()
  if (!names.includes(environment)) {
    throw new GigpoError(
      "BAD_ARGUMENT",
      `${environment} is no environment for a small model made from nothing; those are: ${names.join(", ")}. ` +
        `Use a pretrained model and write a configuration; "${commandLine("config")}" lists its keys.`,
    )
  }
  const text = readFileSync(new URL(`${environment}.yaml`, folder), "utf8")
  // The comment above the keys tells of examples/; the copy keeps what follows it.
  const parsed = parseConfigDocument(text.replace(/^#.*\n/, ""), "the starting configuration")
  parsed.document.set("model", model)
  parsed.document.set("run", run)
  return parsed
}
