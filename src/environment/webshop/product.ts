import { GigpoError } from "../../util/errors.ts"
import { strip } from "../python-text.ts"
import { formatFloat } from "./python-text.ts"

/** A product as the shop shows and sells it. */
export interface Product {
  /** The key that pages show and links are named by; at most 10 characters. */
  readonly asin: string
  readonly title: string
  readonly description: string
  readonly bullets: readonly string[]
  /** In dollars: one price, or the two ends of a range. */
  readonly prices: readonly number[]
  /** The prices as pages print them, e.g. `$10.71 to $18.34`. */
  readonly priceTag: string
  /** Values by the option's name, all lower-cased, in the order of the page. A map, because names may be anything. */
  readonly options: ReadonlyMap<string, readonly string[]>
  /** What the shop knows of the product without showing it; goals are made of these. */
  readonly attributes: readonly string[]
  readonly category: string
  /** The search that first found the product, e.g. `console tables`: its type, in effect. */
  readonly query: string
  /** From the root down: `Home › Kitchen › Kettles`. */
  readonly productCategory: string
}

/** What somebody may want of a product; goals are made from it. */
export interface Instruction {
  readonly text: string
  readonly attributes: readonly string[]
  /** The options wanted. Left out, every combination of the product's options makes a goal of its own. */
  readonly options?: readonly string[]
}

/**
 * Reads one element of a file `items_shuffle*.json`.
 *
 * @param where names the element in messages
 * @throws BAD_DATA where a field has the wrong type or a price cannot be read
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

/** An element of a file `items_ins_v2*.json`: the product's attributes, and an instruction where somebody may want it. */
export function readAttributes(element: unknown, where: string): { attributes: string[]; instruction?: Instruction } {
  const fields = record(element, where)
  const attributes =
    fields.attributes === undefined ? unknownAttributes : texts(fields.attributes, `${where}: attributes`)
  if (fields.instruction === undefined || fields.instruction === null) return { attributes }
  const wanted = texts(fields.instruction_attributes, `${where}: instruction_attributes`)
  if (wanted.length === 0) fail(`${where}: instruction_attributes`, "must not be empty where there is an instruction")
  return { attributes, instruction: { text: requiredText(fields, "instruction", where), attributes: wanted } }
}

/** What WebShop gives a product that the attributes file does not know. */
export const unknownAttributes = ["DUMMY_ATTR"]

/** An element of `items_human_ins.json`: the instructions that people wrote for one product. */
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
  if (typeof fields[key] !== "string") fail(where, `must have a text "${key}"`)
  return fields[key]
}

function text(fields: Record<string, unknown>, key: string, where: string): string {
  return fields[key] === undefined || fields[key] === null ? "" : requiredText(fields, key, where)
}

function texts(value: unknown, where: string): string[] {
  if (!Array.isArray(value) || !value.every((item) => typeof item === "string")) fail(where, "must be a list of texts")
  return value
}

function fail(where: string, problem: string): never {
  throw new GigpoError("BAD_DATA", `webshop: ${where} ${problem}; mend it, or download the file anew.`)
}
