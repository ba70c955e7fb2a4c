import { noArguments } from "./arguments.ts"
import { numeric } from "./compare.ts"
import { Dict } from "./dict.ts"
import { fail, unsupported } from "./errors.ts"
import { limited, reserve, step } from "./limits.ts"
import { findMethod } from "./methods.ts"
import { repr } from "./print.ts"
import {
  effort,
  given,
  isList,
  Markup,
  PyFunction,
  PyObject,
  Range,
  Tuple,
  typeName,
  Undefined,
  type Value,
} from "./values.ts"

/** `value.name`: an attribute, else an item. */
export function getAttribute(value: Value, name: string): Value {
  step(effort(value))
  if (value instanceof Undefined) value.raise()
  return given(attributeOf(value, name), () => given(itemOf(value, name), () => missing(value, name)))
}

/** `value[key]`: an item, else an attribute. */
export function getItem(value: Value, key: Value): Value {
  step(effort(value))
  if (value instanceof Undefined) value.raise()
  const attribute = () => (typeof key === "string" ? attributeOf(value, key) : undefined)
  return given(itemOf(value, key), () => given(attribute(), () => missing(value, key)))
}

/** Attribute of a value; undefined if there is none. */
export function attributeOf(value: Value, name: string): Value | undefined {
  if (name.startsWith("__")) unsupported(`the attribute ${name}`)
  if (value instanceof Markup) unsupported(`the attribute ${name} of escaped or safe text`)
  const own = value instanceof PyObject ? value.attribute(name) : undefined
  if (own !== undefined) return own
  const method = findMethod(value, name)
  if (method === "unsafe")
    return new Undefined(
      `access to attribute ${repr(name)} of ${repr(typeName(value))} object is unsafe.`,
      "SecurityError",
    )
  if (method === undefined) return undefined
  if (method.isProperty) return method.call(value)(noArguments)
  return new PyFunction(name, method.call(value), "builtin_function_or_method")
}

function missing(value: Value, key: Value): Undefined {
  const owner = value === null ? "None" : `${typeName(value)} object`
  if (typeof key === "string") return new Undefined(`'${owner}' has no attribute ${repr(key)}`)
  return new Undefined(`${owner} has no element ${repr(key)}`)
}

/** Item of a value; undefined if there is none, or the value has no such items. */
function itemOf(value: Value, key: Value): Value | undefined {
  if (value instanceof Dict) return isHashable(key) ? value.get(key) : undefined
  if (value instanceof Markup) return unsupported("subscripts of escaped or safe text")
  const at = numeric(key)
  if (typeof at !== "bigint") return undefined
  if (value instanceof Range) {
    const place = at < 0n ? Number(at) + value.length : Number(at)
    return place >= 0 && place < value.length ? value.at(place) : undefined
  }
  const items = typeof value === "string" ? characters(value) : value instanceof Tuple ? value.items : value
  return typeof items === "string" || (items !== null && typeof items === "object" && isList(items))
    ? (items as readonly Value[]).at(Number(at))
    : undefined
}

function isHashable(key: Value): boolean {
  if (isList(key) || key instanceof Dict) return false
  return !(key instanceof Tuple) || key.items.every(isHashable)
}

/** Code points of a text; the text itself if each code point is one UTF-16 unit. */
function characters(text: string): string | string[] {
  return /[\ud800-\udbff]/.test(text) ? Array.from(text) : text
}

export function isSliceable(value: Value): boolean {
  return typeof value === "string" || isList(value) || value instanceof Tuple || value instanceof Range
}

/** `value[start:stop:stride]`. */
export function slice(value: Value, start: Value, stop: Value, stride: Value): Value {
  step(effort(value))
  if (value instanceof Undefined) value.raise()
  if (value instanceof Markup) unsupported("subscripts of escaped or safe text")
  if (value instanceof Range) {
    const [first, end, by] = bounds(value.length, start, stop, stride)
    return new Range(
      value.start + BigInt(first) * value.stride,
      value.start + BigInt(end) * value.stride,
      value.stride * BigInt(by),
    )
  }
  if (typeof value === "string") {
    const chars = characters(value)
    const picked = pick(chars, start, stop, stride)
    return typeof picked === "string" ? picked : picked.join("")
  }
  if (value instanceof Tuple) return new Tuple(pick(value.items, start, stop, stride) as readonly Value[])
  if (isList(value)) return pick(value, start, stop, stride) as readonly Value[]
  if (value instanceof Dict) return fail("TypeError", "unhashable type: 'slice'")
  return fail("TypeError", `'${typeName(value)}' object is not subscriptable`)
}

function pick(items: string | readonly Value[], start: Value, stop: Value, stride: Value): string | readonly Value[] {
  const [first, end, by] = bounds(items.length, start, stop, stride)
  if (by === 1) return limited(items.slice(first, Math.max(first, end)))
  const count = Math.max(Math.ceil((end - first) / by), 0)
  reserve(count)
  const picked = Array.from({ length: count }, (_, index) => items[first + index * by] as Value)
  return typeof items === "string" ? picked.join("") : picked
}

function bounds(length: number, start: Value, stop: Value, stride: Value): [number, number, number] {
  const by = stride === null ? 1 : place(stride)
  if (by === 0) fail("ValueError", "slice step cannot be zero")
  const [low, high] = by > 0 ? [0, length] : [-1, length - 1]
  const clamp = (value: Value, whole: number) => {
    if (value === null) return whole
    const at = place(value)
    return Math.min(Math.max(at < 0 ? at + length : at, low), high)
  }
  return [clamp(start, by > 0 ? low : high), clamp(stop, by > 0 ? high : low), by]
}

function place(value: Value): number {
  const number = numeric(value)
  if (typeof number === "bigint") return Number(number)
  return fail("TypeError", "slice indices must be integers or None or have an __index__ method")
}
