import { Random } from "../../../util/random.ts"
import type { Listing, ProductSource } from "../catalogue.ts"
import { fullListing } from "./full.ts"
import { shortListing } from "./short.ts"

export interface GeneratedOptions {
  /** Products. */
  readonly size: number
  readonly seed: number
  readonly detail: "full" | "short"
}

/**
 * A shop of invented products. Each is a pure function of seed and number, so that a catalogue of any size takes no memory; its
 * products are in the shape of WebShop's, with an instruction each.
 */
export function generatedProducts({ size, seed, detail }: GeneratedOptions): ProductSource {
  const random = new Random(seed).fork("webshop catalogue")
  const make = detail === "short" ? shortListing : fullListing
  return {
    size,
    read: (index): Listing => make(index, random),
  }
}
