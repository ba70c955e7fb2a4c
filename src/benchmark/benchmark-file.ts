import { resolve } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { type EnvironmentName, environmentFields, environmentNames } from "../environment/registry.ts"
import { unreadable } from "../environment/unreadable.ts"
import { replaceFile } from "../files/atomic-file.ts"
import { readLinked } from "../files/regular-file.ts"
import { readJson } from "../json/depth.ts"
import { isObject } from "../options/read.ts"
import { renamedKey } from "../options/renamed.ts"
import { GigpoError } from "../util/errors.ts"
import { version } from "../util/version.ts"
import type { BenchmarkDefinition } from "./definition.ts"
import { isDigest } from "./digest-text.ts"
import { environmentOptions, places } from "./options.ts"

/** Contents of a benchmark file: the definition and the version of gigpo that wrote it. */
interface BenchmarkFile extends Required<BenchmarkDefinition> {
  /** Version of the file format. */
  readonly benchmark: 1
  readonly gigpo: string
}

/** Maximum size of a benchmark file in bytes. A million keys take about 25 MB. */
const largest = 64 * 2 ** 20

const isText = (value: unknown): value is string => typeof value === "string" && value !== ""
const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText)

export function isBenchmarkName(value: unknown): boolean {
  return isText(value) && /^[\p{L}\p{N}][\p{L}\p{N}._/-]{0,99}@\d{1,9}$/u.test(value)
}

type Values = Readonly<Record<string, unknown>>
const checks: { readonly [Key in keyof BenchmarkFile]: (value: unknown, file: Values) => boolean } = {
  benchmark: (value) => value === 1,
  gigpo: isText,
  name: isBenchmarkName,
  about: isText,
  environment: (value) => environmentNames.includes(value as EnvironmentName),
  options: isObject,
  places: (value) => isTexts(value) && value.every((place) => places.includes(place)),
  // The count must equal the number of keys: that many tasks are created before anything is compared.
  tasks: (value, { keys }) => isDeepStrictEqual(value, { count: Array.isArray(keys) ? keys.length : 0 }),
  digests: (value) => isObject(value) && ["tasks", "environment", "prompt"].every((part) => isDigest(value[part])),
  keys: (value) => isTexts(value) && value.length > 0 && value.every((key) => /^[0-9a-f]{16}(-\d{1,9})?$/.test(key)),
}

/**
 * Reads a benchmark file.
 *
 * @throws GigpoError `BAD_DATA` with the key for an invalid file
 */
export async function readBenchmarkFile(path: string): Promise<BenchmarkDefinition> {
  let read: unknown
  try {
    read = readJson(await readLinked(path, largest))
  } catch (cause) {
    throw unreadable(path, cause)
  }
  const file: Values = isObject(read) ? read : {}
  const old = renamedKey(file)
  if (old !== undefined) throw new GigpoError("BAD_DATA", `${path}: ${old}; rename the key in the file.`)
  const misfit = (key: string) =>
    new GigpoError(
      "BAD_DATA",
      `${path}: its ${key} is not valid in a benchmark; pass a file that gigpo benchmark create wrote.`,
    )
  const wrong = Object.entries(checks).find(([key, fits]) => !fits(file[key], file))
  if (wrong) throw misfit(wrong[0])
  const { benchmark: _, gigpo: __, ...definition } = file as unknown as BenchmarkFile
  const { environment, options } = definition
  // A file from elsewhere may set options of the tasks and rules, but must not choose the files that are read or the servers that are requested.
  const own = environmentOptions(options)
  if (
    !Object.keys(options).every((key) => Object.hasOwn(own, key) && Object.hasOwn(environmentFields[environment]!, key))
  )
    throw misfit("options")
  return definition
}

export async function writeBenchmarkFile(path: string, definition: Required<BenchmarkDefinition>): Promise<void> {
  const file: BenchmarkFile = { benchmark: 1, gigpo: version, ...definition }
  await replaceFile(resolve(path), `${JSON.stringify(file, null, 1)}\n`)
}
