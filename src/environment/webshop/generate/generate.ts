import { Random } from "../../../util/random.ts"
import type { Listing, ProductSource } from "../catalogue.ts"
import { fullListing } from "./full.ts"
import { shortListing } from "./short.ts"

export interface GeneratedOptions {
  /** Number of products. */
  readonly size: number
  readonly seed: number
  readonly detail: "full" | "short"
}

/**
 * Source of invented products in WebShop's format, with one instruction each. A product is a pure function of seed and number, so a catalogue
 * of any size takes no memory.
 */
export function generatedProducts({ size, seed, detail }: GeneratedOptions): ProductSource {
  const random = new Random(seed).derive("webshop catalogue")
  const make = detail === "short" ? shortListing : fullListing
  return {
    size,
    read: (index): Listing => make(index, random),
  }
}
