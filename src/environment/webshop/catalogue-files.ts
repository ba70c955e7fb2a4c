import { existsSync } from "node:fs"
import { basename, join } from "node:path"
import { GigpoError } from "../../util/errors.ts"
import type { ProductSource } from "./catalogue.ts"
import { type JsonElement, type ReadElementsOptions, readElements } from "./json-elements.ts"
import { readAttributes, readHumanInstructions, readProduct, unknownAttributes } from "./product.ts"

/** Paths of the files of a WebShop catalogue. */
export interface CatalogueFiles {
  /** `items_shuffle*.json`: a list of products. */
  readonly products: string
  /** `items_ins_v2*.json`: attributes and instructions by asin. */
  readonly attributes: string
  /** `items_human_ins.json`: instructions written by people. If given, goals are made from these. */
  readonly human?: string | undefined
}

/** Small set first: it loads in a second. */
const names = [
  { products: "items_shuffle_1000.json", attributes: "items_ins_v2_1000.json" },
  { products: "items_shuffle.json", attributes: "items_ins_v2.json" },
]
const humanName = "items_human_ins.json"

/** Finds the catalogue files in a folder; the small set is preferred. Throws BAD_DATA if there are none. */
export function findCatalogue(folder: string, goals: "synthetic" | "human"): CatalogueFiles {
  const found = names.find(({ products, attributes }) =>
    [products, attributes].every((name) => existsSync(join(folder, name))),
  )
  if (!found || (goals === "human" && !existsSync(join(folder, humanName)))) {
    const pairs = names.map(({ products, attributes }) => `${products} with ${attributes}`).join(", or ")
    throw new GigpoError(
      "BAD_DATA",
      `webshop: ${folder} does not contain a catalogue: it needs ${pairs}${goals === "human" ? `, and ${humanName}` : ""}. Download ` +
        "them as the README of princeton-nlp/WebShop says, or omit data to use the generated catalogue.",
    )
  }
  return {
    products: join(folder, found.products),
    attributes: join(folder, found.attributes),
    human: goals === "human" ? join(folder, humanName) : undefined,
  }
}

/**
 * Opens a catalogue. Files above 32 MiB (the full one has several GB) are read once, and later product by product on demand. Products
 * without a valid asin and duplicates are skipped, as in the original.
 *
 * @throws BAD_DATA if a file cannot be read, is truncated or corrupt, with file, position and reason
 */
export async function openCatalogueFiles(
  files: CatalogueFiles,
  options: ReadElementsOptions = {},
): Promise<ProductSource> {
  const numbers = new Map<string, number>()
  const products = await readElements(
    files.products,
    ({ value, where }) => {
      const { asin } = readProduct(value, [], where)
      if (asin === "nan" || asin.length > 10 || numbers.has(asin)) return false
      numbers.set(asin, numbers.size)
      return true
    },
    options,
  )
  if (numbers.size === 0)
    throw new GigpoError("BAD_DATA", `webshop: ${files.products} has no products; download it again.`)

  const [attributes, human] = [
    await openMembers(files.attributes, readAttributes),
    files.human === undefined ? undefined : await openMembers(files.human, readHumanInstructions),
  ]
  return {
    size: numbers.size,
    read(index) {
      const { value, where } = products.get(index)
      const known = attributes(index)
      const product = readProduct(value, known?.attributes ?? unknownAttributes, where)
      if (human) return { product, instructions: human(index) ?? [] }
      return { product, instructions: known?.instruction ? [known.instruction] : [] }
    },
  }

  /** Opens a file with an object and maps its members to the products of the catalogue. */
  async function openMembers<T>(path: string, read: (value: unknown, where: string) => T) {
    const places: number[] = []
    let kept = 0
    const members = await readElements(
      path,
      ({ key, value, where }: JsonElement) => {
        if (key === undefined) throw notAnObject(path)
        read(value, where)
        const index = numbers.get(key)
        if (index === undefined) return false
        // The last of several members with the same name counts, as in Python.
        places[index] = kept++
        return true
      },
      options,
    )
    return (index: number): T | undefined => {
      const place = places[index]
      if (place === undefined) return undefined
      const { value, where } = members.get(place)
      return read(value, where)
    }
  }
}

function notAnObject(path: string): GigpoError {
  const message = `webshop: ${path} must be an object by asin, as ${names[0]!.attributes} and ${humanName} are.`
  return new GigpoError("BAD_DATA", `${message} Is ${basename(path)} the right file?`)
}
