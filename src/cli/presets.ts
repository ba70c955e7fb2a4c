import { existsSync, readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { nearestName } from "../options/nearest.ts"
import { GigpoError } from "../util/errors.ts"

// Presets are the configurations in examples/presets/: settings of the paper, of its code and of our benchmarks. Their first comments are
// "# <summary>." and "# Source: <source>".
const folder = new URL("../../examples/presets/", import.meta.url)

/** Configuration of a published experiment or of one of our benchmarks. */
export interface Preset {
  readonly name: string
  /** Path of its file. */
  readonly file: string
  /** What is trained, as a sentence. */
  readonly summary: string
  /** Paper, script or document that the settings are from. */
  readonly source: string
}

/** Names of all presets, sorted. Empty if the package was installed without its examples. */
export function presetNames(): string[] {
  const files = existsSync(folder) ? readdirSync(folder) : []
  return files
    .filter((name) => name.endsWith(".yaml"))
    .map((name) => name.slice(0, -".yaml".length))
    .sort()
}

/** Finds a preset by name. Throws `BAD_ARGUMENT` with the known names. */
export function findPreset(name: string): Preset {
  const names = presetNames()
  if (!names.includes(name)) {
    const near = nearestName(name, names)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `There is no preset ${JSON.stringify(name)}.${near === undefined ? "" : ` Did you mean ${near}?`} Presets: ${names.join(", ")}.`,
    )
  }
  const file = fileURLToPath(new URL(`${name}.yaml`, folder))
  const [first = "", ...lines] = readFileSync(file, "utf8").split("\n")
  const source = lines.find((line) => line.startsWith(sourceMark))?.slice(sourceMark.length) ?? ""
  return { name, file, summary: first.replace(/^# /, ""), source }
}

const sourceMark = "# Source: "
