import { type Callable, index, table, text } from "./arguments.ts"
import { attributeGetter, type Getter } from "./attribute-path.ts"
import { hash } from "./dict.ts"
import { fail, unsupported } from "./errors.ts"
import { toJson } from "./json.ts"
import { listFilters } from "./list-filters.ts"
import { fileSize, floatFilter, intFilter, round } from "./numbers.ts"
import { printf } from "./printf.ts"
import { attributeOf } from "./subscript.ts"
import { tests as plainTests } from "./tests.ts"
import { abs, formatFilter, textFilters } from "./text-filters.ts"
import { type Arguments, given, Iter, iterate, truthy, typeName, Undefined, type Value } from "./values.ts"

const refused = ["forceescape", "pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr"]

function attr(value: Value, name: Value): Value {
  const found = value instanceof Undefined ? value.raise() : attributeOf(value, text(name))
  return given(found, () => new Undefined(`'${typeName(value)} object' has no attribute '${text(name)}'`))
}

function fallback(value: Value, otherwise: Value = "", boolean: Value = false): Value {
  return value instanceof Undefined || (truthy(boolean) && !truthy(value)) ? otherwise : value
}

/** Splits off the first argument, to which the filter or test is applied. */
function rest({ positional, named }: Arguments): {
  value: Value
  positional: readonly Value[]
  named: Arguments["named"]
} {
  const [value, ...others] = positional
  return {
    value: given(value, () => fail("TypeError", "missing 1 required positional argument")),
    positional: others,
    named,
  }
}

function* map({ value, positional, named }: ReturnType<typeof rest>): Generator<Value> {
  if (!truthy(value)) return
  const apply = mapper(positional, named)
  for (const item of iterate(value)) yield apply(item)
}

function mapper(positional: readonly Value[], named: Arguments["named"]): Getter {
  const attribute = named.get("attribute")
  if (positional.length === 0 && attribute !== undefined) {
    for (const key of named.keys())
      if (key !== "attribute" && key !== "default") fail("TypeError", `Unexpected keyword argument '${key}'`)
    return attributeGetter(attribute, false, named.get("default") ?? null)
  }
  const [name, ...others] = positional
  if (name === undefined) return fail("TypeError", "map requires a filter argument")
  return (item) => findFilter(name)({ positional: [item, ...others], named })
}

const select = (wanted: boolean, byAttribute: boolean): Callable =>
  lazily(function* ({ value, positional, named }) {
    if (!truthy(value)) return
    if (byAttribute && positional.length === 0) fail("TypeError", "Missing parameter for attribute name")
    const read: Getter = byAttribute ? attributeGetter(positional[0] as Value) : (item) => item
    const [name, ...others] = positional.slice(byAttribute ? 1 : 0)
    const test: Getter = (item) =>
      name === undefined ? item : findTest(name)({ positional: [item, ...others], named })
    for (const item of iterate(value)) if (truthy(test(read(item))) === wanted) yield item
  })

const lazily =
  (run: (args: ReturnType<typeof rest>) => Iterable<Value>): Callable =>
  (args) =>
    new Iter(run(rest(args)))

/** Filters by name. */
export const filters: ReadonlyMap<string, Callable> = new Map<string, Callable>([
  ...textFilters,
  ...listFilters,
  ...table({
    "abs(x/)": abs,
    "attr(obj name)": attr,
    "d(value default_value? boolean?)": fallback,
    "default(value default_value? boolean?)": fallback,
    "filesizeformat(value binary?)": (value: Value, two: Value = false) =>
      fileSize(value, truthy(two), (size) => printf("%.1f", size)),
    "float(value default?)": (value: Value, otherwise: Value = 0) => floatFilter(value, otherwise),
    "int(value default? base?)": (value: Value, otherwise: Value = 0n, base: Value = 10n) =>
      intFilter(value, otherwise, typeof value === "string" ? index(base) : 10),
    "round(value precision? method?)": (value: Value, digits: Value = 0n, method: Value = "common") =>
      round(value, index(digits), method),
    "tojson(x ensure_ascii? indent? separators? sort_keys?)": toJson,
  }),
  ["format", (args) => formatFilter(rest(args).value, rest(args).positional, args.named)],
  ["map", lazily(map)],
  ["select", select(true, false)],
  ["reject", select(false, false)],
  ["selectattr", select(true, true)],
  ["rejectattr", select(false, true)],
  ...refused.map((name): [string, Callable] => [name, () => unsupported(`the filter ${name}`)]),
])

/** Tests by name. */
export const tests: ReadonlyMap<string, Callable> = new Map<string, Callable>([
  ...plainTests,
  ...table({
    "filter(value)": (name: Value) => filters.has(hash(name) as string),
    "test(value)": (name: Value) => tests.has(hash(name) as string),
  }),
])

/** Fails for a filter of Jinja2 that is not supported. */
export function refuseFilter(name: string): void {
  if (refused.includes(name)) unsupported(`the filter ${name}`)
}

export function findFilter(name: Value): Callable {
  const filter = typeof name === "string" ? filters.get(name) : undefined
  return filter ?? fail("TemplateError", `No filter named '${String(name)}'.`)
}

export function findTest(name: Value): Callable {
  const test = typeof name === "string" ? tests.get(name) : undefined
  return test ?? fail("TemplateError", `No test named '${String(name)}'.`)
}
