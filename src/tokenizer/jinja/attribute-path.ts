import { getItem } from "./subscript.ts"
import { isDigit } from "./unicode.ts"
import { Markup, Undefined, type Value } from "./values.ts"

/** Function that reads a part of an item, e.g. "address.city" or 0. */
export type Getter = (item: Value) => Value

/** Getter for the argument `attribute` of filters; null reads the item itself. */
export function attributeGetter(attribute: Value, ignoringCase = false, fallback: Value = null): Getter {
  const parts = pathOf(attribute)
  return (item) => {
    let value = item
    for (const part of parts) {
      value = getItem(value, part)
      if (fallback !== null && value instanceof Undefined) value = fallback
    }
    return ignoringCase ? ignoreCase(value) : value
  }
}

/** Getter for several attributes separated by commas. */
export function attributesGetter(attribute: Value, ignoringCase: boolean): Getter {
  const paths = typeof attribute === "string" ? attribute.split(",") : [attribute]
  const getters = paths.map((path) => attributeGetter(path, ignoringCase))
  return (item) => getters.map((getter) => getter(item))
}

function pathOf(attribute: Value): Value[] {
  if (attribute === null) return []
  if (typeof attribute !== "string") return [attribute]
  return attribute.split(".").map((part) => (part !== "" && Array.from(part).every(isDigit) ? BigInt(part) : part))
}

export function ignoreCase(value: Value): Value {
  if (value instanceof Markup) return value.text.toLowerCase()
  return typeof value === "string" ? value.toLowerCase() : value
}
