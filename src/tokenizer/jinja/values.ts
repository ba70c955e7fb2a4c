import { fail, unsupported } from "./errors.ts"
import { step } from "./limits.ts"

/**
 * Python value. int is a bigint, float a number, None null, list an array. Lists and dicts are immutable, as in the sandbox of Jinja2.
 */
export type Value = string | bigint | number | boolean | null | readonly Value[] | PyObject

/** Arguments of a call. */
export interface Arguments {
  readonly positional: readonly Value[]
  readonly named: ReadonlyMap<string, Value>
}

/** Base of all values without a JavaScript counterpart. */
export abstract class PyObject {
  /** Name of the Python class. */
  abstract readonly typeName: string
  /** Attributes other than the methods of the type's table. */
  attribute(_name: string): Value | undefined {
    return undefined
  }
  repr(): string {
    return unsupported(`printing a ${this.typeName}, which has no stable text,`)
  }
  get truthy(): boolean {
    return this.length === undefined || this.length > 0
  }
  /** Result of len(); undefined if the value has no length. */
  get length(): number | undefined {
    return undefined
  }
  iterate(): Iterable<Value> | undefined {
    return undefined
  }
  call?(args: Arguments): Value
}

export class Tuple extends PyObject {
  readonly typeName: string = "tuple"
  readonly items: readonly Value[]
  constructor(items: readonly Value[]) {
    super()
    this.items = items
  }
  override get length(): number {
    return this.items.length
  }
  override iterate(): Iterable<Value> {
    return this.items
  }
}

export class Range extends PyObject {
  readonly typeName = "range"
  readonly start: bigint
  readonly stop: bigint
  readonly stride: bigint
  constructor(start: bigint, stop: bigint, stride: bigint) {
    super()
    this.start = start
    this.stop = stop
    this.stride = stride
  }
  override get length(): number {
    const span = this.stride > 0n ? this.stop - this.start : this.start - this.stop
    const stride = this.stride > 0n ? this.stride : -this.stride
    return span > 0n ? Number((span + stride - 1n) / stride) : 0
  }
  at(index: number): bigint {
    return this.start + BigInt(index) * this.stride
  }
  override *iterate(): Iterable<Value> {
    for (let index = 0; index < this.length; index++) yield this.at(index)
  }
  override repr(): string {
    return `range(${this.start}, ${this.stop}${this.stride === 1n ? "" : `, ${this.stride}`})`
  }
}

/** Iterator or generator: can be read once, is always true and has no length. */
export class Iter extends PyObject {
  readonly typeName: string
  readonly #iterator: Iterator<Value>
  constructor(iterable: Iterable<Value>, typeName = "generator") {
    super()
    this.typeName = typeName
    this.#iterator = iterable[Symbol.iterator]()
  }
  override iterate(): Iterable<Value> {
    // After a loop that ends early, the next reader continues, so `return` of the iterator must not be called.
    return { [Symbol.iterator]: () => ({ next: () => this.#iterator.next() }) }
  }
}

/** Jinja2's Undefined: prints nothing, is false and empty; all other operations fail with its message. */
export class Undefined extends PyObject {
  readonly typeName = "Undefined"
  readonly message: string
  readonly kind: "UndefinedError" | "SecurityError"
  constructor(message: string, kind: "UndefinedError" | "SecurityError" = "UndefinedError") {
    super()
    this.message = message
    this.kind = kind
  }
  override get length(): number {
    return 0
  }
  override iterate(): Iterable<Value> {
    return []
  }
  override repr(): string {
    return "Undefined"
  }
  raise(): never {
    fail(this.kind, this.message)
  }
}

/** Text that `escape` or `safe` marked. Operations that would escape other text because of it fail. */
export class Markup extends PyObject {
  readonly typeName = "Markup"
  readonly text: string
  constructor(text: string) {
    super()
    this.text = text
  }
  override get length(): number {
    return textLength(this.text)
  }
  override iterate(): never {
    return unsupported("iterating over escaped or safe text")
  }
}

export class PyFunction extends PyObject {
  readonly typeName: string
  readonly name: string
  override readonly call: (args: Arguments) => Value
  readonly #attributes: Readonly<Record<string, Value>>
  constructor(
    name: string,
    call: (args: Arguments) => Value,
    typeName = "function",
    attributes: Readonly<Record<string, Value>> = {},
  ) {
    super()
    this.name = name
    this.call = call
    this.typeName = typeName
    this.#attributes = attributes
  }
  override attribute(name: string): Value | undefined {
    return Object.hasOwn(this.#attributes, name) ? this.#attributes[name] : undefined
  }
}

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value)
}

export function typeName(value: Value): string {
  if (value === null) return "NoneType"
  if (isList(value)) return "list"
  if (typeof value === "object") return value.typeName
  return { string: "str", bigint: "int", number: "float", boolean: "bool" }[typeof value as "string"]
}

export function truthy(value: Value): boolean {
  if (value === null || typeof value !== "object") return Boolean(value)
  return isList(value) ? value.length > 0 : value.truthy
}

/** Iterates over a value and counts each step, so that no iteration is endless. */
export function* iterate(value: Value): Generator<Value> {
  for (const item of iterable(value)) {
    step()
    yield item
  }
}

function iterable(value: Value): Iterable<Value> {
  if (typeof value === "string") return value
  if (isList(value)) return value
  const items = value !== null && typeof value === "object" ? value.iterate() : undefined
  return items ?? fail("TypeError", `'${typeName(value)}' object is not iterable`)
}

export function isIterable(value: Value): boolean {
  if (typeof value === "string" || isList(value) || value instanceof Markup) return true
  return value !== null && typeof value === "object" && value.iterate() !== undefined
}

/** Value, or another one if it is undefined. None is a value. */
export function given(value: Value | undefined, otherwise: () => Value): Value {
  return value === undefined ? otherwise() : value
}

/** Number of code points. */
export function textLength(text: string): number {
  if (!/[\ud800-\udbff]/.test(text)) return text.length
  let length = 0
  for (const _ of text) length++
  return length
}

/** Cost of reading a whole value. */
export function effort(value: Value): number {
  return typeof value === "string" || isList(value) ? value.length : 0
}

/** len() of a value, undefined if it has none. */
export function lengthOf(value: Value): number | undefined {
  if (typeof value === "string") return textLength(value)
  if (isList(value)) return value.length
  return value !== null && typeof value === "object" ? value.length : undefined
}
