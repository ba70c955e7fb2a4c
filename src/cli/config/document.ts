import { type Document, isMap, isScalar, isSeq, LineCounter, type Node, parse, parseDocument } from "yaml"
import { GigpoError } from "../../errors.ts"

/** A YAML text that knows where its keys stand. */
export interface ConfigDocument {
  readonly document: Document.Parsed
  /** For messages: "config.yaml". */
  readonly source: string
  /** "config.yaml, line 7" for the key at `path`, or what stands nearest above it; "--set" for what was set from outside. */
  where(path: readonly PropertyKey[]): string
}

/** Parses YAML (and so JSON). Throws `BAD_CONFIG` with the line of the first mistake. */
export function parseConfigDocument(text: string, source: string): ConfigDocument {
  const counter = new LineCounter()
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false })
  const at = (offset: number) => `${source}, line ${counter.linePos(offset).line}`
  const [error] = document.errors
  if (error) throw new GigpoError("BAD_CONFIG", `${at(error.pos[0])}: ${firstLine(error.message)}`, { cause: error })
  return {
    document,
    source,
    where(path) {
      const offset = offsetOf(document.contents, path)
      return offset === "set" ? "--set" : offset === undefined ? source : at(offset)
    },
  }
}

/**
 * Applies `training.iterations=20`; the value is YAML too. A text that has keys set below it is a name: `environment: sokoban`
 * is then `environment: { name: sokoban }`. Throws `BAD_CONFIG`.
 */
export function applySet({ document }: ConfigDocument, set: string): void {
  const [, key = "", value = ""] = /^([^=]*)=(.*)$/s.exec(set) ?? []
  const path = key.trim().split(".")
  if (path.some((name) => name === ""))
    throw new GigpoError("BAD_CONFIG", `--set ${set}: write it as key=value, for example training.iterations=20.`)
  try {
    const above = path.slice(0, -1)
    const name = document.getIn(above)
    if (above.length > 0 && typeof name === "string") document.setIn(above, document.createNode({ name }))
    document.setIn(path, document.createNode(parse(value)))
  } catch (cause) {
    const reason = cause instanceof Error ? firstLine(cause.message) : String(cause)
    throw new GigpoError("BAD_CONFIG", `--set ${set}: ${reason}`, { cause })
  }
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
    if (next !== undefined && !(next as Node).range) offset = "set"
    node = next
  }
  return offset
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!
}
