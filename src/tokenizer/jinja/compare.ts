import { Dict, DictView } from "./dict.ts"
import { fail, unsupported } from "./errors.ts"
import { step } from "./limits.ts"
import { effort, isList, iterate, Markup, PyObject, Range, Tuple, typeName, Undefined, type Value } from "./values.ts"

export type Comparison = "<" | "<=" | ">" | ">="

/** Python number as a JavaScript number or bigint, which JavaScript compares exactly. */
export function numeric(value: Value): bigint | number | undefined {
  if (typeof value === "boolean") return BigInt(value)
  return typeof value === "bigint" || typeof value === "number" ? value : undefined
}

const plain = (value: Value) => (value instanceof Markup ? value.text : value)

export function equal(first: Value, second: Value): boolean {
  step(effort(first))
  const [a, b] = [plain(first), plain(second)]
  if (a === b) return true
  const [x, y] = [numeric(a), numeric(b)]
  // biome-ignore lint/suspicious/noDoubleEquals: a bigint and a number are compared by value
  if (x !== undefined && y !== undefined) return x == y
  if (isList(a)) return isList(b) && sameItems(a, b)
  if (a instanceof Tuple) return b instanceof Tuple && sameItems(a.items, b.items)
  if (a instanceof Undefined) return b instanceof Undefined
  if (a instanceof Range) return b instanceof Range && sameItems([...a.iterate()], [...b.iterate()])
  if (a instanceof DictView && b instanceof DictView) return unsupported("comparing views of dicts")
  if (!(a instanceof Dict && b instanceof Dict) || a.length !== b.length) return false
  for (const [key, value] of a.entries()) {
    const other = b.get(key)
    if (other === undefined || !equal(value, other)) return false
  }
  return true
}

function sameItems(a: readonly Value[], b: readonly Value[]): boolean {
  return a.length === b.length && a.every((item, index) => equal(item, b[index] as Value))
}

export function compare(operator: Comparison, first: Value, second: Value): boolean {
  step()
  const [a, b] = [plain(first), plain(second)]
  for (const value of [a, b]) if (value instanceof Undefined) value.raise()
  const [x, y] = [numeric(a), numeric(b)]
  if (x !== undefined && y !== undefined) return ordered(operator, x, y)
  if (typeof a === "string" && typeof b === "string") return ordered(operator, codePointOrder(a, b), 0)
  if (isList(a) && isList(b)) return compareItems(operator, a, b)
  if (a instanceof Tuple && b instanceof Tuple) return compareItems(operator, a.items, b.items)
  if (a instanceof DictView && b instanceof DictView) unsupported("comparing views of dicts")
  return fail("TypeError", `'${operator}' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`)
}

function compareItems(operator: Comparison, a: readonly Value[], b: readonly Value[]): boolean {
  const at = a.findIndex((item, index) => index >= b.length || !equal(item, b[index] as Value))
  if (at < 0 || at >= b.length) return ordered(operator, a.length, b.length)
  return compare(operator, a[at] as Value, b[at] as Value)
}

function ordered(operator: Comparison, a: bigint | number, b: bigint | number): boolean {
  if (operator === "<") return a < b
  if (operator === "<=") return a <= b
  return operator === ">" ? a > b : a >= b
}

/** Order by code points: negative, 0 or positive. JavaScript compares UTF-16 units, which puts U+10000 before U+E000. */
function codePointOrder(a: string, b: string): number {
  let at = 0
  while (at < a.length && a.charCodeAt(at) === b.charCodeAt(at)) at++
  if (at === a.length || at === b.length) return a.length - b.length
  const unit = (text: string) => {
    const code = text.charCodeAt(at)
    return code >= 0xe000 ? code - 0x2000 : code >= 0xd800 ? code + 0x10000 : code
  }
  return unit(a) - unit(b)
}

/** The operator `in`. */
export function contains(container: Value, value: Value): boolean {
  step(effort(container))
  if (typeof container === "string" || container instanceof Markup) {
    const part = plain(value)
    if (typeof part === "string") return (plain(container) as string).includes(part)
    return fail("TypeError", `'in <string>' requires string as left operand, not ${typeName(value)}`)
  }
  if (container instanceof Dict) return container.has(value)
  if (container instanceof DictView && container.kind === "keys") return container.dict.has(value)
  if (!isList(container) && !(container instanceof PyObject && container.iterate() !== undefined))
    fail("TypeError", `argument of type '${typeName(container)}' is not iterable`)
  for (const item of iterate(container)) if (item === value || equal(item, value)) return true
  return false
}

/** sorted() by a key of each item. */
export function sorted(items: readonly Value[], keyOf: (item: Value) => Value, reverse: boolean): Value[] {
  const keyed = items.map((item) => ({ item, key: keyOf(item) }))
  const sign = reverse ? -1 : 1
  keyed.sort((a, b) => (compare("<", a.key, b.key) ? -sign : compare("<", b.key, a.key) ? sign : 0))
  return keyed.map(({ item }) => item)
}
