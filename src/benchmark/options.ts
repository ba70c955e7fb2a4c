import { resolve } from "node:path"
import { agentFields } from "../environment/agent.ts"
import { isObject } from "../options/read.ts"

// Options of an environment by who sets them for a benchmark. Options of prompts, locations of data and limits of the machine are set by the
// configuration. All other options determine tasks and rules and are fixed by the benchmark.

/** Options of prompts and of the parsing of completions. */
export const speech: readonly string[] = [...Object.keys(agentFields()), "admissible", "completionFormat"]

/** Options with paths of files. */
const files: readonly string[] = [
  ...["data", "products", "attributes", "humanGoals"],
  ...["questions", "testQuestions", "corpus", "databases"],
  ...["tasks", "testTasks"],
]

/** Options with locations of data, in files or on servers. */
export const places: readonly string[] = [...files, "retriever", "url"]

/** Options of requests to a server. */
export const retrieverOptions: readonly string[] = [
  "requestForm",
  "retrieverTimeout",
  "retrieverAttempts",
  "retrieverDelay",
]

/** Options that depend on the machine. */
export const limits: readonly string[] = [
  ...["signal", "timeLimit", "memoryLimit", "processes"],
  ...["messageTimeout", "capacityTimeout", "maxFrameBytes"],
]

/** Options without influence on held-out tasks. */
export const training: readonly string[] = ["expert", "trainSplit"]

type Options = Readonly<Record<string, unknown>>

export function pick(options: Options, keys: readonly string[]): Options {
  return Object.fromEntries(Object.entries(options).filter(([key]) => keys.includes(key)))
}

/** Options that determine tasks and rules. */
export function environmentOptions(options: Options): Options {
  const others = [...speech, ...places, ...retrieverOptions, ...limits]
  return Object.fromEntries(Object.entries(options).filter(([key]) => !others.includes(key)))
}

/** Options with absolute paths, so that texts that begin with a path can be recognized. */
export function located(options: Options): Options {
  const absolute = ([key, value]: [string, unknown]) => [
    key,
    files.includes(key) && typeof value === "string" ? resolve(value) : value,
  ]
  return Object.fromEntries(Object.entries(options).map(absolute))
}

/**
 * JSON in which paths of `located` options are replaced by the names of the options. The result does not depend on the location of the
 * files.
 */
export function withoutPlaces(json: string, options: Options): string {
  const named = Object.entries(pick(options, files)).filter(([, path]) => typeof path === "string")
  // Longest paths first, because a path may be inside another.
  const inOrder = (named as [string, string][]).sort(([, a], [, b]) => b.length - a.length)
  return inOrder.reduce((text, [key, path]) => text.replaceAll(JSON.stringify(path).slice(0, -1), `"<${key}>`), json)
}

/** Options that JSON can represent: no functions, no signals. */
export function plainOptions(options: Options): Options {
  const isPlain = (value: unknown): boolean =>
    Array.isArray(value) || isObject(value)
      ? Object.values(value).every(isPlain) &&
        (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype)
      : value === null || ["string", "number", "boolean"].includes(typeof value)
  return Object.fromEntries(Object.entries(options).filter(([, value]) => isPlain(value)))
}
