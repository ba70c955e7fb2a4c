import { index, table } from "./arguments.ts"
import { binary } from "./arithmetic.ts"
import { attributeGetter, attributesGetter, type Getter } from "./attribute-path.ts"
import { compare, equal, sorted } from "./compare.ts"
import { Dict, DictView, hash } from "./dict.ts"
import { fail } from "./errors.ts"
import { limited, reserve } from "./limits.ts"
import { str } from "./print.ts"
import { joinText } from "./text-methods.ts"
import {
  Iter,
  isIterable,
  isList,
  iterate,
  lengthOf,
  Markup,
  Range,
  Tuple,
  truthy,
  typeName,
  Undefined,
  type Value,
} from "./values.ts"

const all = (value: Value) => limited([...iterate(value)])
const first = (values: Iterable<Value>, otherwise: string): Value => {
  for (const item of values) return item
  return new Undefined(otherwise)
}

/** reversed() of a value; undefined if the value is not reversible. */
function reversed(value: Value): readonly Value[] | undefined {
  if (typeof value === "string") return Array.from(value).reverse()
  const ordered =
    isList(value) ||
    value instanceof Tuple ||
    value instanceof Range ||
    value instanceof Dict ||
    value instanceof DictView ||
    value instanceof Undefined
  return ordered ? all(value).reverse() : undefined
}

function reverse(value: Value): Value {
  const turned = reversed(value)
  if (typeof value === "string") return (turned as string[]).join("")
  if (turned !== undefined) return new Iter(turned, "reversed")
  return isIterable(value) ? all(value).reverse() : fail("TypeError", "argument must be iterable")
}

function last(value: Value): Value {
  const turned = reversed(value) ?? fail("TypeError", `'${typeName(value)}' object is not reversible`)
  return first(turned, "No last item, sequence was empty.")
}

function length(value: Value): bigint {
  const size = lengthOf(value)
  return size === undefined ? fail("TypeError", `object of type '${typeName(value)}' has no len()`) : BigInt(size)
}

function extreme(operator: "<" | ">") {
  return (value: Value, caseSensitive: Value = false, attribute: Value = null): Value => {
    const keyOf = attributeGetter(attribute, !truthy(caseSensitive))
    let best: { item: Value; key: Value } | undefined
    for (const item of iterate(value)) {
      const key = keyOf(item)
      if (best === undefined || compare(operator, key, best.key)) best = { item, key }
    }
    return best === undefined ? new Undefined("No aggregated item, sequence was empty.") : best.item
  }
}

function dictSort(value: Value, caseSensitive: Value = false, by: Value = "key", reverse: Value = false): Value {
  const at = by === "key" ? 0 : by === "value" ? 1 : fail("TypeError", 'You can only sort by either "key" or "value"')
  if (value instanceof Undefined) value.raise()
  if (!(value instanceof Dict)) fail("AttributeError", `'${typeName(value)}' object has no attribute 'items'`)
  const keyOf = attributeGetter(BigInt(at), !truthy(caseSensitive))
  return sorted([...new DictView(value as Dict, "items").iterate()], keyOf, truthy(reverse))
}

function sort(value: Value, reverse: Value = false, caseSensitive: Value = false, attribute: Value = null): Value {
  return sorted(all(value), attributesGetter(attribute, !truthy(caseSensitive)), truthy(reverse))
}

function* unique(value: Value, caseSensitive: Value = false, attribute: Value = null): Generator<Value> {
  const keyOf = attributeGetter(attribute, !truthy(caseSensitive))
  const seen = new Set<unknown>()
  for (const item of iterate(value)) {
    const key = hash(keyOf(item))
    if (!seen.has(key)) yield item
    seen.add(key)
  }
}

function* batch(value: Value, lineCount: Value, fill: Value = null): Generator<Value> {
  let line: Value[] = []
  for (const item of iterate(value)) {
    if (equal(BigInt(line.length), lineCount)) {
      yield line
      line = []
    }
    line.push(item)
  }
  if (line.length === 0) return
  if (fill !== null && compare("<", BigInt(line.length), lineCount)) {
    const missing = index(lineCount) - line.length
    reserve(missing)
    line.push(...new Array<Value>(missing).fill(fill))
  }
  yield line
}

function* slice(value: Value, slices: Value, fill: Value = null): Generator<Value> {
  const items = all(value)
  const count = index(slices)
  if (count === 0) fail("ZeroDivisionError", "integer division or modulo by zero")
  const [size, extra] = [Math.floor(items.length / count), items.length % count]
  let at = 0
  for (let part = 0; part < count; part++) {
    const end = at + size + Number(part < extra)
    reserve(end - at)
    yield fill !== null && part >= extra ? [...items.slice(at, end), fill] : items.slice(at, end)
    at = end
  }
}

class Group extends Tuple {
  override readonly typeName = "_GroupTuple"
  override attribute(name: string): Value | undefined {
    return name === "grouper" ? this.items[0] : name === "list" ? this.items[1] : undefined
  }
}

function groupBy(value: Value, attribute: Value, fallback: Value = null, caseSensitive: Value = false): Value {
  const keyOf = attributeGetter(attribute, !truthy(caseSensitive), fallback)
  const shown = attributeGetter(attribute, false, fallback)
  const groups: { key: Value; items: Value[] }[] = []
  for (const item of sorted(all(value), keyOf, false)) {
    const key = keyOf(item)
    const group = groups.at(-1)
    if (group !== undefined && equal(group.key, key)) group.items.push(item)
    else groups.push({ key, items: [item] })
  }
  return groups.map(({ items }) => new Group([shown(items[0] as Value), items]))
}

function join(value: Value, separator: Value = "", attribute: Value = null): string {
  const read: Getter = attribute === null ? (item) => item : attributeGetter(attribute)
  const texts = function* (): Generator<Value> {
    for (const item of iterate(value)) yield str(read(item))
  }
  return joinText(str(separator), new Iter(texts()))
}

function sum(value: Value, attribute: Value = null, start: Value = 0n): Value {
  if (typeof start === "string" || start instanceof Markup)
    fail("TypeError", "sum() can't sum strings [use ''.join(seq) instead]")
  const read: Getter = attribute === null ? (item) => item : attributeGetter(attribute)
  let total: Value = start
  for (const item of iterate(value)) total = binary("+", total, read(item))
  return total
}

function* items(value: Value): Generator<Value> {
  if (value instanceof Undefined) return
  if (!(value instanceof Dict)) fail("TypeError", "Can only get item pairs from a mapping.")
  yield* new DictView(value as Dict, "items").iterate()
}

/** Filter that is a generator in Python: evaluated lazily. */
const generator =
  (run: (...values: never[]) => Iterable<Value>) =>
  (...values: never[]): Value =>
    new Iter(run(...values))

export const listFilters = table({
  "batch(value linecount fill_with?)": generator(batch),
  "count(obj/)": length,
  "dictsort(value case_sensitive? by? reverse?)": dictSort,
  "first(seq)": (value: Value) => first(iterate(value), "No first item, sequence was empty."),
  "groupby(value attribute default? case_sensitive?)": groupBy,
  "items(value)": generator(items),
  "join(value d? attribute?)": join,
  "last(seq)": last,
  "length(obj/)": length,
  "list(value)": all,
  "max(value case_sensitive? attribute?)": extreme(">"),
  "min(value case_sensitive? attribute?)": extreme("<"),
  "reverse(value)": reverse,
  "slice(value slices fill_with?)": generator(slice),
  "sort(value reverse? case_sensitive? attribute?)": sort,
  "sum(iterable attribute? start?)": sum,
  "unique(value case_sensitive? attribute?)": generator(unique),
})
