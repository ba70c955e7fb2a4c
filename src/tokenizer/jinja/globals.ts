import { signature, text } from "./arguments.ts"
import { numeric } from "./compare.ts"
import { Dict } from "./dict.ts"
import { fail, unsupported } from "./errors.ts"
import { repr, str } from "./print.ts"
import { type Moment, strftime } from "./strftime.ts"
import { type Arguments, iterate, PyFunction, PyObject, Range, typeName, Undefined, type Value } from "./values.ts"

const maximumRange = 100_000

function integer(value: Value): bigint {
  if (value instanceof Undefined) return fail("TypeError", "'Undefined' object cannot be interpreted as an integer")
  const number = numeric(value)
  return typeof number === "bigint"
    ? number
    : fail("TypeError", `'${typeName(value)}' object cannot be interpreted as an integer`)
}

function range(first: Value, second?: Value, third?: Value): Range {
  const [start, stop] = second === undefined ? [0n, integer(first)] : [integer(first), integer(second)]
  const stride = third === undefined ? 1n : integer(third)
  if (stride === 0n) fail("ValueError", "range() arg 3 must not be zero")
  const made = new Range(start, stop, stride)
  if (made.length > maximumRange)
    fail("OverflowError", `Range too big. The sandbox blocks ranges larger than MAX_RANGE (${maximumRange}).`)
  return made
}

/** dict() of a mapping or of pairs, and of named values. */
function dict({ positional, named }: Arguments): Dict {
  if (positional.length > 1) fail("TypeError", `dict expected at most 1 argument, got ${positional.length}`)
  const [source] = positional
  const made = new Dict()
  if (source instanceof Dict) for (const [key, value] of source.entries()) made.set(key, value)
  else if (source instanceof Namespace) unsupported("a dict made of a namespace")
  else if (source !== undefined)
    for (const item of iterate(source)) {
      const pair = [...iterate(item)]
      if (pair.length !== 2)
        fail("ValueError", `dictionary update sequence element has length ${pair.length}; 2 is required`)
      made.set(pair[0] as Value, pair[1] as Value)
    }
  for (const [key, value] of named) made.set(key, value)
  return made
}

function fromKeys(keys: Value, value: Value = null): Dict {
  return Dict.of(Array.from(iterate(keys), (key): [Value, Value] => [key, value]))
}

/** Result of `namespace()`, the only kind of object whose attributes a template can set. */
export class Namespace extends PyObject {
  readonly typeName = "Namespace"
  readonly #values: Dict
  constructor(values: Dict) {
    super()
    for (const key of values.iterate()) checkName(key)
    this.#values = values
  }
  override get truthy(): boolean {
    return true
  }
  override attribute(name: string): Value | undefined {
    return this.#values.get(name)
  }
  set(name: string, value: Value): void {
    checkName(name)
    this.#values.set(name, value)
  }
  override repr(): string {
    return `<Namespace ${repr(this.#values)}>`
  }
}

function checkName(name: Value): void {
  if (typeof name === "string" && name.startsWith("_"))
    fail(
      "SecurityError",
      `Chat templates cannot store underscore-prefixed attributes on a namespace, but got ${repr(name)}. Please rename the attribute.`,
    )
}

class Cycler extends PyObject {
  readonly typeName = "Cycler"
  readonly #items: readonly Value[]
  #at = 0
  constructor({ positional, named }: Arguments) {
    super()
    if (named.size > 0) fail("TypeError", "Cycler() got an unexpected keyword argument")
    if (positional.length === 0) fail("TypeError", "at least one item has to be provided")
    this.#items = positional
  }
  override attribute(name: string): Value | undefined {
    const current = this.#items[this.#at] as Value
    const next = () => {
      this.#at = (this.#at + 1) % this.#items.length
      return current
    }
    const reset = () => {
      this.#at = 0
      return null
    }
    if (name === "current") return current
    if (name === "pos") return BigInt(this.#at)
    if (name === "next") return new PyFunction("next", signature("next", "", next))
    return name === "reset" ? new PyFunction("reset", signature("reset", "", reset)) : undefined
  }
}

function joiner(separator: Value = ", "): PyFunction {
  let used = false
  const join = () => {
    const given = used ? separator : ""
    used = true
    return given
  }
  return new PyFunction("joiner", signature("joiner", "", join), "Joiner")
}

const raise = (message: Value): never => fail("TemplateError", str(message))

/** Global names of chat templates in transformers. */
export function globals(now: Moment): ReadonlyMap<string, Value> {
  const define = (name: string, parameters: string, implementation: unknown) =>
    new PyFunction(name, signature(name, parameters, implementation))
  const fromkeys = define("fromkeys", "iterable/ value/?", fromKeys)
  return new Map<string, Value>([
    ["range", define("range", "start/ stop/? step/?", range)],
    ["dict", new PyFunction("dict", dict, "TemplateDict", { fromkeys })],
    ["namespace", new PyFunction("namespace", (args) => new Namespace(dict(args)), "type")],
    ["cycler", new PyFunction("cycler", (args) => new Cycler(args), "type")],
    ["joiner", define("joiner", "sep?", joiner)],
    ["lipsum", define("lipsum", "n? html? min? max?", () => unsupported("the function lipsum"))],
    ["raise_exception", define("raise_exception", "message", raise)],
    ["strftime_now", define("strftime_now", "format", (format: Value) => strftime(now, text(format)))],
  ])
}
