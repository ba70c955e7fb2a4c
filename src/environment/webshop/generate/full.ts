import type { Random } from "../../../util/random.ts"
import type { Listing } from "../catalogue.ts"
import { formatFloat } from "../python-text.ts"
import { capitalise, choose, chooseSome } from "./draw.ts"
import { attributes, departments, firstSyllables, lastSyllables, materials, optionValues, places } from "./words.ts"

const kinds = Object.entries(departments).flatMap(([department, kinds]) => kinds.map((kind) => ({ department, kind })))

const openings = ["my shopping list says", "today i came for", "could you get me some"]

/** Product with title, texts, prices and options of about the length and variety of real ones. */
export function fullListing(index: number, catalogue: Random): Listing {
  const random = catalogue.derive("full product", index)
  const { department, kind } = choose(kinds, random)
  const traits = random.shuffled(chooseSome(attributes, 3 + random.below(3), random))
  const wanted = traits.slice(0, 2 + random.below(2))
  const brand = choose(firstSyllables, random) + choose(lastSyllables, random)
  const material = choose(materials, random)
  const place = choose(places, random)
  const model = `${String.fromCharCode(65 + random.below(26))}${100 + random.below(900)}`
  const options = kind.options.map((name): [string, string[]] => [
    name,
    chooseSome(optionValues[name], 2 + random.below(4), random),
  ])
  const prices = drawPrices(random)
  return {
    product: {
      asin: asinOf(index),
      title: `${brand} ${model} ${capitalise(`${traits[0]} ${material} ${kind.name}`)} for ${capitalise(place)}, ${capitalise(traits[1]!)}`,
      description:
        `The ${brand} ${model} is a ${kind.name} of ${material} for ${place}. ` +
        `It is ${traits.slice(0, -1).join(", ")} and ${traits.at(-1)}, and comes with a guarantee of ${1 + random.below(5)} years.`,
      bullets: [
        `${material} ${kind.name}: made for ${place}`,
        ...traits.map((trait) => `${capitalise(trait)} by design`),
      ],
      prices: prices.length > 0 ? prices : [100],
      priceTag: prices.length > 0 ? prices.map((price) => `$${formatFloat(price)}`).join(" to ") : "$100.0",
      options: new Map(options),
      attributes: traits,
      category: department,
      query: kind.plural,
      productCategory: ["everything", department, kind.plural].join(" › "),
    },
    instructions: [
      { text: `${choose(openings, random)} ${kind.plural} that are ${wanted.join(", ")}`, attributes: wanted },
    ],
  }
}

/** Price, or both ends of a price range (one product in seven), in dollars; empty for one product in twenty. */
function drawPrices(random: Random): number[] {
  const fate = random.below(140)
  if (fate < 7) return []
  const low = Math.round(500 * 40 ** random.uniform()) / 100
  return fate < 27 ? [low, Math.round(low * (110 + random.below(60))) / 100] : [low]
}

/** Identifier of ten characters, as real ones have. Unique for numbers below 36^8, and without visible order. */
function asinOf(index: number): string {
  const code = (index * 3_000_017 + 1_234_567_891) % 36 ** 8
  return `GX${code.toString(36).toUpperCase().padStart(8, "0")}`
}
