import { type Document, isMap, isScalar, isSeq, LineCounter, type Node, parse, parseDocument } from "yaml"
import { GigpoError } from "../../util/errors.ts"
import { findRefused, findRepeatedKey } from "./limits.ts"

/** Maximum depth of nested groups and lists: the parser recurses once per level. */
const deepest = 100

/** YAML text with the position of each key. */
export interface ConfigDocument {
  readonly document: Document.Parsed
  /** Text as read from the file. */
  readonly text: string
  /** Name in messages, such as "config.yaml". */
  readonly source: string
  /**
   * Place of the key at `path`, or of the nearest key above it: "config.yaml, line 7", an option ("--set") if that set
   * the value, or `source` if the program set it.
   */
  where(path: readonly PropertyKey[]): string
  /** Whether a command-line option, not the text, gave the value at `path`. */
  isSet(path: readonly string[]): boolean
  /** Records that an option has set the key. */
  setBy(path: readonly string[], option: string): void
}

/**
 * Setting that replaces a key of a document: `key=value` as typed after `--set`, or the equivalent of another option.
 */
export type Setting = string | { readonly text: string; readonly from: string }

/** Parses YAML, and so JSON. Throws `BAD_CONFIG` with the line of the first error. */
export function parseConfigDocument(text: string, source: string): ConfigDocument {
  const refused = findRefused(text, deepest)
  if (refused !== undefined) throw new GigpoError("BAD_CONFIG", `${source}${refused}`)
  const counter = new LineCounter()
  // The parser's own check is quadratic in the number of keys.
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
 * Applies a setting such as `training.iterations=20`; the value is YAML. Setting a key below a text treats the text as
 * a name: `environment: sokoban` becomes `environment: { name: sokoban }`. Setting a name on a group replaces only its
 * name. Throws `BAD_CONFIG`.
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
      // Another variant keeps the options next to its name. Options unknown to the variant are rejected later, not lost.
      for (const key of ["name", "use", "sha256"]) chosen.delete(key)
      chosen.set("name", given)
    } else document.setIn(path, document.createNode(given))
    setBy(path, from)
  } catch (cause) {
    const reason = cause instanceof Error ? firstLine(cause.message) : String(cause)
    throw new GigpoError("BAD_CONFIG", `--set ${set}: ${reason}`, { cause })
  }
}

/** Whether one of two paths is a prefix of the other. */
function isWithin(one: readonly string[], other: readonly PropertyKey[]): boolean {
  return one.slice(0, other.length).every((key, index) => key === String(other[index]))
}

/** Offset of the last known part of `path`; "set" if a setting gave the value. */
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
    // A value set over one of the file keeps the position of that key.
    if (next !== undefined && next !== null && !(next as Node).range) offset = "set"
    node = next
  }
  return offset
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!
}
