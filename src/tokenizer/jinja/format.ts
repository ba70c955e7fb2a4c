import { toFloat } from "./arithmetic.ts"
import { numeric } from "./compare.ts"
import { fail, unsupported } from "./errors.ts"
import { limited, reserve } from "./limits.ts"
import { floatDigits, intDigits, isNegative } from "./number-format.ts"
import { ascii, floatText, repr, str } from "./print.ts"
import { getAttribute, getItem } from "./subscript.ts"
import { type Arguments, given, Markup, textLength, typeName, type Value } from "./values.ts"

/** str.format, with the lookups of Jinja2's sandbox. */
export function format(template: string, args: Arguments): string {
  let automatic = 0
  let numbered = false
  const argument = (name: string): Value => {
    if (name !== "" && !/^\d+$/.test(name)) return given(args.named.get(name), () => fail("KeyError", repr(name)))
    if (name === "" ? numbered : automatic > 0)
      fail("ValueError", "cannot switch between manual field specification and automatic field numbering")
    if (name !== "") numbered = true
    const at = name === "" ? automatic++ : Number(name)
    return given(args.positional[at], () =>
      fail("IndexError", "Replacement index out of range for positional args tuple"),
    )
  }
  const expand = (source: string, depth: number): string => {
    if (depth < 0) fail("ValueError", "Max string recursion exceeded")
    let result = ""
    for (const part of fields(source)) {
      if (typeof part === "string") result += part
      else {
        const value = convert(lookUp(part.name, argument), part.conversion)
        result += formatValue(value, expand(part.spec, depth - 1))
      }
    }
    return limited(result)
  }
  return expand(template, 2)
}

interface Field {
  readonly name: string
  readonly conversion: string | undefined
  readonly spec: string
}

/** Literal texts and fields. */
function* fields(source: string): Generator<string | Field> {
  let at = 0
  while (at < source.length) {
    const brace = source.slice(at).search(/[{}]/)
    const start = brace < 0 ? source.length : at + brace
    if (start > at) yield source.slice(at, start)
    if (start === source.length) return
    if (source[start + 1] === source[start]) {
      yield source[start] as string
      at = start + 2
      continue
    }
    if (source[start] === "}") fail("ValueError", "Single '}' encountered in format string")
    let depth = 1
    let end = start + 1
    for (; end < source.length && depth > 0; end++) depth += source[end] === "{" ? 1 : source[end] === "}" ? -1 : 0
    if (depth > 0) fail("ValueError", "expected '}' before end of string")
    yield field(source.slice(start + 1, end - 1))
    at = end
  }
}

function field(source: string): Field {
  const [, name, mark, rest] = /^((?:\[[^\]]*\]|[^!:[{])*)(?:([!:])(.*))?$/su.exec(source) ?? []
  if (name === undefined) return fail("ValueError", "unexpected '{' in field name")
  if (mark !== "!") return { name, conversion: undefined, spec: rest ?? "" }
  const [, conversion, spec] = /^(.)(?::(.*))?$/su.exec(rest ?? "") ?? []
  if (conversion === undefined) return fail("ValueError", "expected ':' after conversion specifier")
  return { name, conversion, spec: spec ?? "" }
}

function lookUp(name: string, argument: (name: string) => Value): Value {
  const [, first, path] = /^([^.[]*)(.*)$/su.exec(name) as unknown as [string, string, string]
  let value = argument(first)
  let at = 0
  for (const match of path.matchAll(/\.([^.[]*)|\[([^\]]*)\]/gsu)) {
    if (match.index !== at) fail("ValueError", "Only '.' or '[' may follow ']' in format field specifier")
    const [whole, attribute, key] = match
    if ((attribute ?? key) === "") fail("ValueError", "Empty attribute in format string")
    if (attribute !== undefined) value = getAttribute(value, attribute)
    else value = getItem(value, /^\d+$/.test(key as string) ? BigInt(key as string) : (key as string))
    at += whole.length
  }
  if (at !== path.length) fail("ValueError", "Missing ']' in format string")
  return value
}

function convert(value: Value, conversion: string | undefined): Value {
  if (conversion === undefined) return value
  if (conversion === "s") return str(value)
  if (conversion === "r") return repr(value)
  return conversion === "a" ? ascii(value) : fail("ValueError", `Unknown conversion specifier ${conversion}`)
}

interface Spec {
  readonly fill: string | undefined
  readonly align: string | undefined
  readonly sign: string
  readonly alternate: boolean
  readonly zero: boolean
  readonly width: number
  readonly grouping: string
  readonly precision: number | undefined
  readonly type: string
}

const specPattern = /^(?:(.)?([<>=^]))?([-+ ]?)(z?)(#?)(0?)(\d*)([,_]?)(?:\.(\d+))?(.?)$/su

function formatValue(value: Value, source: string): string {
  if (value instanceof Markup) unsupported("formatting escaped or safe text")
  if (source === "") return str(value)
  const number = numeric(value)
  if (number === undefined && typeof value !== "string")
    return fail("TypeError", `unsupported format string passed to ${typeName(value)}.__format__`)
  const match = specPattern.exec(source)
  if (match === null) return fail("ValueError", "Invalid format specifier")
  const [, fill, align, sign, z, alternate, zero, width, grouping, precision, type] = match as unknown as string[]
  if (z) unsupported("the format option z")
  if ((source.match(/\d+/g) ?? []).some((digits) => BigInt(digits) >= 2n ** 63n))
    fail("ValueError", "Too many decimal digits in format string")
  const spec: Spec = {
    fill,
    align,
    sign: sign as string,
    alternate: alternate !== "",
    zero: zero !== "",
    width: Number(width),
    grouping: grouping as string,
    precision: precision === undefined ? undefined : Number(precision),
    type: type as string,
  }
  reserve(spec.width + (number === undefined ? 0 : (spec.precision ?? 0)))
  return number === undefined ? formatText(value as string, spec) : formatNumber(number, spec)
}

function formatText(value: string, spec: Spec): string {
  if ((spec.type !== "" && spec.type !== "s") || spec.sign || spec.alternate || spec.grouping || spec.align === "=")
    fail("ValueError", "Invalid format specifier for object of type 'str'")
  const body = spec.precision === undefined ? value : Array.from(value).slice(0, spec.precision).join("")
  return align("", body, { ...spec, align: spec.align ?? "<" })
}

function formatNumber(number: bigint | number, spec: Spec): string {
  const negative = isNegative(number)
  const sign = negative ? "-" : spec.sign === "-" ? "" : spec.sign
  if (spec.type === "n") unsupported("the format type n")
  const isInt = typeof number === "bigint"
  if (isInt && ["", "b", "d", "o", "x", "X", "c"].includes(spec.type)) return formatInt(number, sign, spec)
  if (!["", "e", "E", "f", "F", "g", "G", "%"].includes(spec.type))
    fail("ValueError", `Unknown format code '${spec.type}' for object of type '${isInt ? "int" : "float"}'`)
  return align(sign, group(floatBody(toFloat(number), spec), spec, sign, 3), spec)
}

function floatBody(value: number, spec: Spec): string {
  if (spec.type === "%") return `${floatDigits(value * 100, "f", spec.precision ?? 6, spec.alternate)}%`
  if (spec.type !== "") return floatDigits(value, spec.type, spec.precision ?? 6, spec.alternate)
  if (spec.precision === undefined) return floatText(Math.abs(value))
  const digits = floatDigits(value, "g", spec.precision, spec.alternate)
  if (/[.en]/.test(digits)) return digits
  return digits.length >= Math.max(spec.precision, 1) ? scientificLike(value, spec) : `${digits}.0`
}

/** Without a type, a float that has no place for a decimal is written with an exponent. */
function scientificLike(value: number, { precision, alternate }: Spec): string {
  return floatDigits(value, "e", Math.max((precision ?? 1) - 1, 0), alternate).replace(/(?:\.0*|(\.\d*?)0*)e/, "$1e")
}

function formatInt(value: bigint, sign: string, spec: Spec): string {
  if (spec.precision !== undefined) fail("ValueError", "Precision not allowed in integer format specifier")
  if (spec.type === "c") {
    if (spec.sign || spec.alternate || spec.grouping)
      fail("ValueError", "not allowed with integer format specifier 'c'")
    if (value < 0n || value > 0x10ffffn) fail("OverflowError", "%c arg not in range(0x110000)")
    return align("", String.fromCodePoint(Number(value)), spec)
  }
  const { prefix, digits } = intDigits(value, spec.type || "d", spec.alternate)
  const ten = spec.type === "" || spec.type === "d"
  if (spec.grouping === "," && !ten) fail("ValueError", `Cannot specify ',' with '${spec.type}'.`)
  return align(sign + prefix, group(digits, spec, sign + prefix, ten ? 3 : 4), spec)
}

/** Digits with separators before the point; zeros that fill the width get separators too. */
function group(body: string, spec: Spec, sign: string, size: number): string {
  if (spec.grouping === "") return body
  const [, digits, rest] = /^(\d*(?:[\da-fA-F]+$)?)(.*)$/s.exec(body) as unknown as [string, string, string]
  const filled = (spec.zero && spec.align === undefined) || (spec.fill === "0" && spec.align === "=")
  const room = filled ? spec.width - sign.length - rest.length : 0
  let count = digits.length
  while (count + Math.floor((count - 1) / size) < room) count++
  const padded = digits.padStart(count, "0")
  const head = padded.slice(0, count % size)
  const groups = padded.slice(head.length).match(new RegExp(`.{${size}}`, "g")) ?? []
  return [...(head === "" ? [] : [head]), ...groups].join(spec.grouping) + rest
}

function align(sign: string, body: string, spec: Spec): string {
  const missing = Math.max(spec.width - textLength(sign + body), 0)
  const fill = spec.fill ?? (spec.zero ? "0" : " ")
  switch (spec.align ?? (spec.zero ? "=" : ">")) {
    case "<":
      return sign + body + fill.repeat(missing)
    case "^":
      return fill.repeat(Math.floor(missing / 2)) + sign + body + fill.repeat(Math.ceil(missing / 2))
    case "=":
      return sign + fill.repeat(missing) + body
    default:
      return fill.repeat(missing) + sign + body
  }
}
