import { GigpoError } from "../../util/errors.ts"
import { strip } from "../python-text.ts"
import { formatFloat } from "./python-text.ts"

/** Product of the shop. */
export interface Product {
  /** Key that pages and links show; at most 10 characters. */
  readonly asin: string
  readonly title: string
  readonly description: string
  readonly bullets: readonly string[]
  /** Price in dollars, or both ends of a price range. */
  readonly prices: readonly number[]
  /** Prices as pages show them, e.g. `$10.71 to $18.34`. */
  readonly priceTag: string
  /** Lower-case values by option name, in the order of the page. A map, because names are arbitrary. */
  readonly options: ReadonlyMap<string, readonly string[]>
  /** Hidden attributes, from which goals are made. */
  readonly attributes: readonly string[]
  readonly category: string
  /** Search that first found the product, e.g. `console tables`; serves as its type. */
  readonly query: string
  /** Path of categories from the root: `Home › Kitchen › Kettles`. */
  readonly productCategory: string
}

/** Instruction about a product, from which goals are made. */
export interface Instruction {
  readonly text: string
  readonly attributes: readonly string[]
  /** Required options. If undefined, every combination of the product's options gives a separate goal. */
  readonly options?: readonly string[]
}

/**
 * Reads an element of a file `items_shuffle*.json`.
 *
 * @param where - name of the element for messages
 * @throws BAD_DATA if a field has the wrong type or a price cannot be parsed
 */
export function readProduct(element: unknown, attributes: readonly string[], where: string): Product {
  const fields = record(element, where)
  const { small_description: bullets, pricing } = fields
  const prices = readPrices(text(fields, "pricing", where), `${where}: pricing`)
  return {
    asin: requiredText(fields, "asin", where),
    title: requiredText(fields, "name", where),
    description: text(fields, "full_description", where),
    bullets: Array.isArray(bullets)
      ? texts(bullets, `${where}: small_description`)
      : [text(fields, "small_description", where)],
    prices: prices.length > 0 ? prices : [100],
    priceTag: pricing && prices.length > 0 ? prices.map((price) => `$${formatFloat(price)}`).join(" to ") : "$100.0",
    options: readOptionValues(fields.customization_options, where),
    attributes,
    category: text(fields, "category", where),
    query: strip(text(fields, "query", where).toLowerCase()),
    productCategory: text(fields, "product_category", where),
  }
}

function readPrices(pricing: string, where: string): number[] {
  const amounts = pricing.split("$").slice(1, 3)
  return amounts.map((amount) => {
    const digits = amount.replace(/[^\d.]/g, "")
    const price = digits === "" ? Number.NaN : Number(digits)
    if (!Number.isFinite(price))
      fail(where, `must read like "$10.71" or "$10.71 to $18.34", not ${JSON.stringify(pricing)}`)
    return price
  })
}

function readOptionValues(given: unknown, where: string): Map<string, string[]> {
  const options = new Map<string, string[]>()
  if (given === undefined || given === null || given === "") return options
  for (const [name, contents] of Object.entries(record(given, `${where}: customization_options`))) {
    if (contents === null) continue
    const place = `${where}: customization_options.${name}`
    if (!Array.isArray(contents)) fail(place, "must be a list or null")
    const values = contents.map((content, i) =>
      requiredText(record(content, `${place}[${i}]`), "value", `${place}[${i}]`),
    )
    options.set(
      name.toLowerCase(),
      values.map((value) => strip(value).replaceAll("/", " | ").toLowerCase()),
    )
  }
  return options
}

/** Reads an element of a file `items_ins_v2*.json`: attributes of a product, and optionally an instruction. */
export function readAttributes(element: unknown, where: string): { attributes: string[]; instruction?: Instruction } {
  const fields = record(element, where)
  const attributes =
    fields.attributes === undefined ? unknownAttributes : texts(fields.attributes, `${where}: attributes`)
  if (fields.instruction === undefined || fields.instruction === null) return { attributes }
  const wanted = texts(fields.instruction_attributes, `${where}: instruction_attributes`)
  if (wanted.length === 0) fail(`${where}: instruction_attributes`, "must not be empty if there is an instruction")
  return { attributes, instruction: { text: requiredText(fields, "instruction", where), attributes: wanted } }
}

/** Default of WebShop for a product that is not in the attributes file. */
export const unknownAttributes = ["DUMMY_ATTR"]

/** Reads an element of `items_human_ins.json`: instructions written by people for a product. */
export function readHumanInstructions(element: unknown, where: string): Instruction[] {
  if (!Array.isArray(element)) fail(where, "must be a list of instructions")
  return element.map((item, i) => {
    const place = `${where}[${i}]`
    const fields = record(item, place)
    return {
      text: requiredText(fields, "instruction", place),
      attributes: texts(fields.instruction_attributes, `${place}: instruction_attributes`),
      options: texts(fields.instruction_options, `${place}: instruction_options`),
    }
  })
}

function record(value: unknown, where: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) fail(where, "must be an object")
  return value as Record<string, unknown>
}

function requiredText(fields: Record<string, unknown>, key: string, where: string): string {
  if (typeof fields[key] !== "string") fail(where, `must have a string "${key}"`)
  return fields[key]
}

function text(fields: Record<string, unknown>, key: string, where: string): string {
  return fields[key] === undefined || fields[key] === null ? "" : requiredText(fields, key, where)
}

function texts(value: unknown, where: string): string[] {
  if (!Array.isArray(value) || !value.every((item) => typeof item === "string"))
    fail(where, "must be a list of strings")
  return value
}

function fail(where: string, problem: string): never {
  throw new GigpoError("BAD_DATA", `webshop: ${where} ${problem}; fix it, or download the file again.`)
}
