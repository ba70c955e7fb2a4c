import { resolve } from "node:path"
import { agentFields } from "../environment/agent.ts"
import { isObject } from "../options/read.ts"

// Whose an option of an environment is, where a panel is played: how the agent is spoken to, where files and servers are, and what a
// machine allows are the configuration's; all others make the world, which the panel fixes.

/** How the agent is spoken to, and how its replies are read. */
export const speech: readonly string[] = [...Object.keys(agentFields()), "admissible", "reply"]

/** Where files are. */
const files: readonly string[] = [
  ...["data", "products", "attributes", "humanGoals"],
  ...["questions", "testQuestions", "corpus", "databases"],
  ...["tasks", "testTasks"],
]

/** Where data is, in files or at servers. */
export const places: readonly string[] = [...files, "retriever", "url"]

/** How a server is asked, where there is one. */
export const asking: readonly string[] = ["requestForm", "retrieverTimeout", "retrieverAttempts", "retrieverDelay"]

/** What a machine allows. */
export const limits: readonly string[] = [
  ...["signal", "timeLimit", "memoryLimit", "processes"],
  ...["messageTimeout", "capacityTimeout", "maxFrameBytes"],
]

/** What says nothing of how held-out tasks are played. */
export const training: readonly string[] = ["expert", "trainSplit"]

type Options = Readonly<Record<string, unknown>>

export function pick(options: Options, keys: readonly string[]): Options {
  return Object.fromEntries(Object.entries(options).filter(([key]) => keys.includes(key)))
}

/** The options that make the world. */
export function worldOf(options: Options): Options {
  const others = [...speech, ...places, ...asking, ...limits]
  return Object.fromEntries(Object.entries(options).filter(([key]) => !others.includes(key)))
}

/** Paths made absolute, so that it can be told where one begins a text. */
export function located(options: Options): Options {
  const absolute = ([key, value]: [string, unknown]) => [
    key,
    files.includes(key) && typeof value === "string" ? resolve(value) : value,
  ]
  return Object.fromEntries(Object.entries(options).map(absolute))
}

/** JSON in which the paths of `located` options stand by the options' names, so that it is the same wherever the files lie. */
export function withoutPlaces(json: string, options: Options): string {
  const named = Object.entries(pick(options, files)).filter(([, path]) => typeof path === "string")
  // The longest first: one may lie within another.
  const inOrder = (named as [string, string][]).sort(([, a], [, b]) => b.length - a.length)
  return inOrder.reduce((text, [key, path]) => text.replaceAll(JSON.stringify(path).slice(0, -1), `"<${key}>`), json)
}

/** What JSON can hold of options: no functions, no signals. */
export function plainOptions(options: Options): Options {
  const isPlain = (value: unknown): boolean =>
    Array.isArray(value) || isObject(value)
      ? Object.values(value).every(isPlain) &&
        (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype)
      : value === null || ["string", "number", "boolean"].includes(typeof value)
  return Object.fromEntries(Object.entries(options).filter(([, value]) => isPlain(value)))
}
