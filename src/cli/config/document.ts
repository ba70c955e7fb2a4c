import { type Document, isMap, isScalar, isSeq, LineCounter, type Node, parse, parseDocument } from "yaml"
import { GigpoError } from "../../util/errors.ts"
import { findRefused, findRepeatedKey } from "./limits.ts"

/** Levels of groups and lists: the parser calls itself for each. */
const deepest = 100

/** A YAML text that knows where its keys stand. */
export interface ConfigDocument {
  readonly document: Document.Parsed
  /** As it was read. */
  readonly text: string
  /** For messages: "config.yaml". */
  readonly source: string
  /**
   * "config.yaml, line 7" for the key at `path`, or what stands nearest above it; the option for what one has set ("--set"), and the
   * source for what the program has.
   */
  where(path: readonly PropertyKey[]): string
  /** Whether an option of the command line gave the value at `path`, and not the text. */
  isSet(path: readonly string[]): boolean
  /** Notes that an option has set the key. */
  setBy(path: readonly string[], option: string): void
}

/** What is put over a document: key=value as typed behind `--set`, or as another option stands for. */
export type Setting = string | { readonly text: string; readonly from: string }

/** Parses YAML (and so JSON). Throws `BAD_CONFIG` with the line of the first mistake. */
export function parseConfigDocument(text: string, source: string): ConfigDocument {
  const refused = findRefused(text, deepest)
  if (refused !== undefined) throw new GigpoError("BAD_CONFIG", `${source}${refused}`)
  const counter = new LineCounter()
  // The parser compares each key with all others of its group.
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false, uniqueKeys: false })
  const at = (offset: number) => `${source}, line ${counter.linePos(offset).line}`
  const [error] = document.errors
  const repeated = error ? undefined : findRepeatedKey(document.contents)
  if (repeated) throw new GigpoError("BAD_CONFIG", `${at(repeated.range?.[0] ?? 0)}: Map keys must be unique`)
  if (error) throw new GigpoError("BAD_CONFIG", `${at(error.pos[0])}: ${firstLine(error.message)}`, { cause: error })
  const options: { readonly path: readonly string[]; readonly option: string }[] = []
  return {
    document,
    text,
    source,
    where(path) {
      const offset = offsetOf(document.contents, path)
      if (typeof offset === "number") return at(offset)
      const set = offset === "set" ? options.findLast((one) => isWithin(one.path, path)) : undefined
      return set?.option ?? source
    },
    isSet: (path) => offsetOf(document.contents, path) === "set",
    setBy: (path, option) => void options.push({ path, option }),
  }
}

/**
 * Applies `training.iterations=20`; the value is YAML too. A text that has keys set below it is a name: `environment: sokoban`
 * is then `environment: { name: sokoban }`. The other way round a name put over a group replaces its name alone. Throws `BAD_CONFIG`.
 */
export function applySet({ document, setBy }: ConfigDocument, setting: Setting): void {
  const { text: set, from } = typeof setting === "string" ? { text: setting, from: "--set" } : setting
  const [, key = "", value = ""] = /^([^=]*)=(.*)$/s.exec(set) ?? []
  const path = key.trim().split(".")
  if (path.some((name) => name === ""))
    throw new GigpoError("BAD_CONFIG", `--set ${set}: write it as key=value, for example training.iterations=20.`)
  try {
    const above = path.slice(0, -1)
    const name = document.getIn(above)
    if (above.length > 0 && typeof name === "string") document.setIn(above, document.createNode({ name }))
    const given: unknown = parse(value)
    const chosen = document.getIn(path)
    if (typeof given === "string" && isMap(chosen) && (chosen.has("name") || chosen.has("use"))) {
      // Another choice keeps the options beside it; those that it does not have are refused by name, not lost.
      for (const key of ["name", "use", "sha256"]) chosen.delete(key)
      chosen.set("name", given)
    } else document.setIn(path, document.createNode(given))
    setBy(path, from)
  } catch (cause) {
    const reason = cause instanceof Error ? firstLine(cause.message) : String(cause)
    throw new GigpoError("BAD_CONFIG", `--set ${set}: ${reason}`, { cause })
  }
}

/** Whether one of two paths lies within the other. */
function isWithin(one: readonly string[], other: readonly PropertyKey[]): boolean {
  return one.slice(0, other.length).every((key, index) => key === String(other[index]))
}

/** Where the last known part of `path` begins; "set" where it came from outside the text. */
function offsetOf(root: Node | null, path: readonly PropertyKey[]): number | "set" | undefined {
  let node: unknown = root
  let offset: number | "set" | undefined
  for (const name of path) {
    let next: unknown
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => (isScalar(key) ? key.value : key) === name)
      if (!pair) return offset
      offset = isScalar(pair.key) ? (pair.key.range?.[0] ?? "set") : "set"
      next = pair.value
    } else if (isSeq(node)) {
      next = node.items[Number(name)]
      offset = (next as Node | undefined)?.range?.[0] ?? offset
    }
    // A value that was set over one in the file keeps that one's key.
    if (next !== undefined && next !== null && !(next as Node).range) offset = "set"
    node = next
  }
  return offset
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!
}
