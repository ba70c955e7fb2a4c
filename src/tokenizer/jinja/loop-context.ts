import { signature } from "./arguments.ts"
import { equal } from "./compare.ts"
import { fail } from "./errors.ts"
import { type Arguments, iterate, lengthOf, PyFunction, PyObject, Tuple, Undefined, type Value } from "./values.ts"

/** Renders the body of a recursive loop for other items. */
export type Recurse = (items: Value, depth: number) => string

/** The variable `loop`. */
export class LoopContext extends PyObject {
  readonly typeName = "LoopContext"
  readonly #items: Value
  #iterator: Iterator<Value>
  readonly #recurse: Recurse | undefined
  readonly #depth: number
  #index = -1
  #before: Value | undefined
  #current: Value | undefined
  /** Next item, if it was read ahead. */
  #after: IteratorResult<Value> | undefined
  #length: number | undefined
  #changed: Value | undefined

  constructor(items: Value, recurse: Recurse | undefined, depth: number) {
    super()
    this.#items = items
    this.#iterator = iterate(items)
    this.#recurse = recurse
    this.#depth = depth
  }

  *rounds(): Generator<Value> {
    for (;;) {
      const { done, value } = this.#peek()
      this.#after = undefined
      if (done) return
      this.#index++
      this.#before = this.#current
      this.#current = value
      yield value
    }
  }

  #peek(): IteratorResult<Value> {
    this.#after ??= this.#iterator.next()
    return this.#after
  }

  override get truthy(): boolean {
    return this.length > 0
  }

  override get length(): number {
    this.#length ??= lengthOf(this.#items) ?? this.#readAll()
    return this.#length
  }

  #readAll(): number {
    const left: Value[] = []
    for (let next = this.#iterator.next(); !next.done; next = this.#iterator.next()) left.push(next.value)
    this.#iterator = left[Symbol.iterator]()
    const looked = this.#after !== undefined && !this.#after.done
    return left.length + this.#index + 1 + Number(looked)
  }

  override attribute(name: string): Value | undefined {
    const number = (value: number) => BigInt(value)
    switch (name) {
      case "index":
        return number(this.#index + 1)
      case "index0":
        return number(this.#index)
      case "revindex":
        return number(this.length - this.#index)
      case "revindex0":
        return number(this.length - this.#index - 1)
      case "first":
        return this.#index === 0
      case "last":
        return this.#peek().done === true
      case "length":
        return number(this.length)
      case "depth":
        return number(this.#depth + 1)
      case "depth0":
        return number(this.#depth)
      case "previtem":
        return this.#index === 0 ? new Undefined("there is no previous item") : this.#before
      case "nextitem": {
        const next = this.#peek()
        return next.done ? new Undefined("there is no next item") : next.value
      }
      case "cycle":
        return new PyFunction("cycle", ({ positional }) => this.#cycle(positional))
      case "changed":
        return new PyFunction("changed", ({ positional }) => this.#isChanged(new Tuple(positional)))
      default:
        return undefined
    }
  }

  #cycle(values: readonly Value[]): Value {
    if (values.length === 0) fail("TypeError", "no items for cycling given")
    return values[this.#index % values.length] as Value
  }

  #isChanged(value: Tuple): boolean {
    const changed = this.#changed === undefined || !equal(this.#changed, value)
    this.#changed = value
    return changed
  }

  override call = (args: Arguments): Value =>
    signature("loop", "iterable", (items: Value) => {
      if (this.#recurse === undefined)
        fail("TypeError", "The loop must have the 'recursive' marker to be called recursively.")
      return this.#recurse(items, this.#depth + 1)
    })(args)

  override repr(): string {
    return `<LoopContext ${this.#index + 1}/${this.length}>`
  }
}
