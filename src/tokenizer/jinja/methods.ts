import { type Callable, signature, table } from "./arguments.ts"
import { equal, numeric } from "./compare.ts"
import { Dict, DictView } from "./dict.ts"
import { fail, unsupported } from "./errors.ts"
import { format } from "./format.ts"
import { str } from "./print.ts"
import { textMethods } from "./text-methods.ts"
import { type Arguments, given, type Range, Tuple, typeName, type Value } from "./values.ts"

export interface Method {
  readonly isProperty: boolean
  call(value: Value): Callable
}

/** Method or property of a built-in type; "unsafe" if the sandbox of Jinja2 denies access. */
export function findMethod(value: Value, name: string): Method | "unsafe" | undefined {
  const type = types.get(typeName(value))
  if (type === undefined) return undefined
  if (type.unsafe.has(name)) return "unsafe"
  if (type.refused.has(name)) unsupported(`${typeName(value)}.${name}`)
  const make = type.methods[name]
  if (Object.hasOwn(type.methods, name) && make !== undefined) return { isProperty: false, call: make }
  const property = type.properties[name]
  if (!Object.hasOwn(type.properties, name) || property === undefined) return undefined
  return { isProperty: true, call: (self) => () => property(self) }
}

interface Type {
  readonly methods: Readonly<Record<string, (self: Value) => Callable>>
  readonly properties: Readonly<Record<string, (self: Value) => Value>>
  readonly unsafe: ReadonlySet<string>
  readonly refused: ReadonlySet<string>
}

function type(parts: {
  readonly methods?: Type["methods"]
  readonly properties?: Type["properties"]
  readonly unsafe?: string
  readonly refused?: string
}): Type {
  const words = (list?: string) => new Set(list?.split(" "))
  return {
    methods: parts.methods ?? {},
    properties: parts.properties ?? {},
    unsafe: words(parts.unsafe),
    refused: words(parts.refused),
  }
}

/** Methods from a table of `"name(parameters)": implementation`; implementations get the value as first argument. */
export function methods<T extends Value>(
  entries: Readonly<Record<string, (self: T, ...values: never[]) => Value>>,
): Type["methods"] {
  return Object.fromEntries(
    Object.entries(entries).map(([key, implementation]) => {
      const name = key.slice(0, key.indexOf("("))
      const bind =
        (self: Value) =>
        (...values: Value[]) =>
          implementation(self as T, ...(values as never[]))
      return [name, (self: Value) => table({ [key]: bind(self) }).get(name) as Callable]
    }),
  )
}

const formatMethod = (self: Value) => (args: Arguments) => format(self as string, args)
const formatMapMethod = (self: Value) =>
  signature("format_map", "mapping/", (mapping: Value) => {
    if (!(mapping instanceof Dict)) return unsupported("format_map() of something that is no dict")
    const named = new Map(Array.from(mapping.entries(), ([key, value]) => [str(key), value]))
    return format(self as string, { positional: [], named })
  })

const indexOf = (items: readonly Value[], value: Value, start?: Value, stop?: Value) => {
  const place = (at: Value | undefined, whole: number) => {
    if (at === undefined) return whole
    const number = numeric(at)
    if (typeof number !== "bigint")
      return fail("TypeError", "slice indices must be integers or have an __index__ method")
    return number < 0n ? Math.max(Number(number) + items.length, 0) : Number(number)
  }
  const end = Math.min(place(stop, items.length), items.length)
  for (let at = place(start, 0); at < end; at++) if (equal(items[at] as Value, value)) return BigInt(at)
  return fail("ValueError", "the value is not in the list")
}
const count = (items: readonly Value[], value: Value) => BigInt(items.filter((item) => equal(item, value)).length)

const intProperties: Type["properties"] = {
  real: (self) => numeric(self) as bigint,
  numerator: (self) => numeric(self) as bigint,
  imag: () => 0n,
  denominator: () => 1n,
}
const intMethods = methods<bigint | boolean>({
  "bit_length()": (self) => {
    const size = BigInt(self)
    return size === 0n ? 0n : BigInt((size < 0n ? -size : size).toString(2).length)
  },
  "bit_count()": (self) => BigInt(BigInt(self).toString(2).replace(/[^1]/g, "").length),
  "conjugate()": (self) => BigInt(self),
  "as_integer_ratio()": (self) => new Tuple([BigInt(self), 1n]),
})
const intType = type({ methods: intMethods, properties: intProperties, refused: "to_bytes from_bytes" })

const listType = type({
  methods: methods<readonly Value[]>({
    "copy()": (self) => [...self],
    "count(value/)": count,
    "index(value/ start/? stop/?)": indexOf,
  }),
  unsafe: "append clear pop reverse insert sort extend remove",
})

const dictType = type({
  methods: methods<Dict>({
    "keys()": (self) => new DictView(self, "keys"),
    "values()": (self) => new DictView(self, "values"),
    "items()": (self) => new DictView(self, "items"),
    "get(key/ default/?)": (self, key: Value, fallback: Value = null) => given(self.get(key), () => fallback),
    "copy()": (self) => Dict.of(self.entries()),
  }),
  unsafe: "clear pop popitem setdefault update",
  refused: "fromkeys",
})

const tupleType = type({
  methods: methods<Tuple>({
    "count(value/)": (self, value: Value) => count(self.items, value),
    "index(value/ start/? stop/?)": (self, value: Value, start?: Value, stop?: Value) =>
      indexOf(self.items, value, start, stop),
  }),
})

const rangeType = type({
  methods: methods<Range>({
    "count(value/)": (self, value: Value) => count([...self.iterate()], value),
    "index(value/)": (self, value: Value) => indexOf([...self.iterate()], value),
  }),
  properties: {
    start: (self) => (self as Range).start,
    stop: (self) => (self as Range).stop,
    step: (self) => (self as Range).stride,
  },
})

const floatType = type({
  methods: methods<number>({
    "is_integer()": (self) => Number.isInteger(self),
    "conjugate()": (self) => self,
  }),
  properties: { real: (self) => self, imag: () => 0 },
  refused: "as_integer_ratio fromhex hex",
})

const generatorType = type({ refused: "send throw close gi_frame gi_code gi_running gi_yieldfrom gi_suspended" })
const viewType = type({ refused: "isdisjoint mapping" })

const types: ReadonlyMap<string, Type> = new Map([
  [
    "str",
    type({
      methods: { ...methods<string>(textMethods), format: formatMethod, format_map: formatMapMethod },
      refused: "casefold encode maketrans translate",
    }),
  ],
  ["int", intType],
  ["bool", intType],
  ["float", floatType],
  ["list", listType],
  ["dict", dictType],
  ["tuple", tupleType],
  ["range", rangeType],
  ["generator", generatorType],
  ["dict_keys", viewType],
  ["dict_values", viewType],
  ["dict_items", viewType],
])
