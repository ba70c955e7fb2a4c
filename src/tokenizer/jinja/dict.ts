import { fail } from "./errors.ts"
import { limited } from "./limits.ts"
import { isList, Markup, PyObject, Tuple, typeName, Undefined, type Value } from "./values.ts"

const undefinedHash = Symbol("Undefined")

/** Key of a JavaScript Map, equal for values that are equal in Python, such as 1, 1.0 and True. */
export function hash(value: Value): unknown {
  switch (typeof value) {
    case "string":
      return value.startsWith("\0") ? `\0s${value}` : value
    case "boolean":
      return BigInt(value)
    case "number":
      return Number.isInteger(value) ? BigInt(value) : value
    case "bigint":
      return value
  }
  if (value === null) return null
  if (value instanceof Tuple) return limited(`\0t${value.items.map((item) => tagged(hash(item))).join()}`)
  if (value instanceof Markup) return hash(value.text)
  if (value instanceof Undefined) return undefinedHash
  if (isList(value) || value instanceof Dict) return fail("TypeError", `unhashable type: '${typeName(value)}'`)
  return value
}

/** Identity numbers of objects in tuples. */
const identities = new WeakMap<object, number>()
let lastIdentity = 0

function tagged(part: unknown): string {
  if (typeof part === "string") return JSON.stringify(part)
  if (typeof part !== "object" || part === null) return `${typeof part} ${String(part)}`
  const identity = identities.get(part) ?? ++lastIdentity
  identities.set(part, identity)
  return `object ${identity}`
}

/** Python dict: keys of any hashable type, in insertion order. */
export class Dict extends PyObject {
  readonly typeName = "dict"
  readonly #entries = new Map<unknown, [Value, Value]>()

  static of(pairs: Iterable<readonly [Value, Value]>): Dict {
    const dict = new Dict()
    for (const [key, value] of pairs) dict.set(key, value)
    return dict
  }
  /** Sets a value during construction. An existing key keeps its place and its first form. */
  set(key: Value, value: Value): void {
    const id = hash(key)
    const entry = this.#entries.get(id)
    if (entry === undefined) this.#entries.set(id, [key, value])
    else entry[1] = value
  }
  get(key: Value): Value | undefined {
    return this.#entries.get(hash(key))?.[1]
  }
  has(key: Value): boolean {
    return this.#entries.has(hash(key))
  }
  override get length(): number {
    return this.#entries.size
  }
  entries(): Iterable<[Value, Value]> {
    return this.#entries.values()
  }
  override *iterate(): Iterable<Value> {
    for (const [key] of this.#entries.values()) yield key
  }
}

/** Result of keys(), values() or items(). */
export class DictView extends PyObject {
  readonly typeName: string
  readonly dict: Dict
  readonly kind: "keys" | "values" | "items"
  constructor(dict: Dict, kind: "keys" | "values" | "items") {
    super()
    this.dict = dict
    this.kind = kind
    this.typeName = `dict_${kind}`
  }
  override get length(): number {
    return this.dict.length
  }
  override *iterate(): Iterable<Value> {
    for (const [key, value] of this.dict.entries())
      yield this.kind === "keys" ? key : this.kind === "values" ? value : new Tuple([key, value])
  }
}
