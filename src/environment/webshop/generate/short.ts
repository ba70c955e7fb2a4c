import type { Random } from "../../../util/random.ts"
import type { Listing } from "../catalogue.ts"
import { formatFloat } from "../python-text.ts"
import { choose } from "./draw.ts"
import { short } from "./words.ts"

/** All single attributes and pairs of attributes. */
const wishes: readonly (readonly string[])[] = short.attributes.flatMap((first, i) => [
  [first],
  ...short.attributes.slice(i + 1).map((second) => [first, second]),
])
const combinations = wishes.length * short.kinds.length

/**
 * Product with a title of three or four words, such as `Luma soft round lamp`. The first 440 products have different kinds or attributes, so an
 * instruction fits only one of them. Later products differ from these only by brand and price.
 */
export function shortListing(index: number, catalogue: Random): Listing {
  const random = catalogue.derive("short product", index)
  // 171 and the number of combinations are coprime, so all combinations occur before one repeats.
  const place = (catalogue.derive("first").below(combinations) + index * 171) % combinations
  const kind = short.kinds[place % short.kinds.length]!
  const attributes = wishes[Math.floor(place / short.kinds.length)]!
  const phrase = [...attributes, kind.name].join(" ")
  const price = 5 + random.below(90)
  return {
    product: {
      asin: `P${index + 1}`,
      title: `${choose(short.brands, random)} ${phrase}`,
      description: "",
      bullets: [],
      prices: [price],
      priceTag: `$${formatFloat(price)}`,
      options: new Map(kind.options.map((name) => [name, short.optionValues[name as "color" | "size"]])),
      attributes,
      category: "shop",
      query: kind.name,
      productCategory: `shop › ${kind.plural}`,
    },
    instructions: [{ text: `find a ${phrase}`, attributes }],
  }
}
