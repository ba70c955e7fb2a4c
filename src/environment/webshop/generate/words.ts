// Vocabulary of the generated shop. Brands, kinds and phrases are invented: they are not those of real products, and no attribute is one of
// WebShop's. Attribute phrases have no words in common, so that the fuzzy comparison of the reward never confuses them.

const list = (text: string) => text.split(", ")

/** Kind of product: singular, plural, and names of its options. */
export interface Kind {
  readonly name: string
  readonly plural: string
  readonly options: readonly OptionName[]
}

export type OptionName = "color" | "size" | "capacity" | "pack"

const kinds = (names: string, options: readonly OptionName[]): Kind[] =>
  list(names).map((pair) => {
    const [name, plural] = pair.split("/") as [string, string]
    return { name, plural, options }
  })

export const departments: Readonly<Record<string, readonly Kind[]>> = {
  home: [
    ...kinds("table lamp/table lamps, wall clock/wall clocks, picture frame/picture frames", ["color"]),
    ...kinds("cushion cover/cushion covers, woven rug/woven rugs, curtain panel/curtain panels", ["color", "size"]),
  ],
  kitchen: [
    ...kinds("tea kettle/tea kettles, storage jar/storage jars, soup pot/soup pots", ["color", "capacity"]),
    ...kinds("chopping board/chopping boards, oven mitt/oven mitts, serving tray/serving trays", ["size"]),
  ],
  garden: [
    ...kinds("flower planter/flower planters, watering can/watering cans", ["color", "capacity"]),
    ...kinds("hand trowel/hand trowels, seed tray/seed trays, bird feeder/bird feeders", ["pack"]),
  ],
  clothing: [
    ...kinds("rain jacket/rain jackets, knit sweater/knit sweaters, hiking pants/hiking pants", ["color", "size"]),
    ...kinds("wool scarf/wool scarves, sun hat/sun hats, ankle socks/ankle socks", ["color", "pack"]),
  ],
  travel: [
    ...kinds("day backpack/day backpacks, toiletry bag/toiletry bags, water bottle/water bottles", [
      "color",
      "capacity",
    ]),
    ...kinds("neck pillow/neck pillows, luggage tag/luggage tags", ["color"]),
  ],
  desk: [
    ...kinds("desk organizer/desk organizers, lined notebook/lined notebooks, pencil case/pencil cases", [
      "color",
      "size",
    ]),
    ...kinds("phone stand/phone stands, cable box/cable boxes, book rest/book rests", []),
  ],
}

export const attributes = list(
  "hand finished, rust proof, wipes spotless, laundry tolerant, low odor, airs overnight, claw defying, double layered, " +
    "heat insulated, grips firmly, stows neatly, fade free, built lasting, plastic reduced, velvet feel, travel ready, leak tight, " +
    "jolt damped, dust repellent, tool less assembly, child safe, eco conscious, unglossy front, thrice stitched, " +
    "airy cloth, narrow outline, stain shielded, gift wrapped, weather hardened, noise hushed",
)

export const materials = list(
  "bamboo, canvas, ceramic, cork, cotton, enamel, felt, linen, oak, recycled fiber, rubber, birch",
)
export const places = list(
  "bedrooms, balconies, small flats, offices, weekend trips, cabins, patios, studios, campsites, hallways, student rooms, kitchens",
)
export const firstSyllables = list(
  "Bra, Cor, Del, Fen, Gul, Hes, Jor, Kav, Lun, Mir, Nol, Orv, Pel, Rud, Sel, Tov, Ulm, Vex, Wil, Zan",
)
export const lastSyllables = list(
  "bek, dora, fjord, gano, hild, kova, lisk, mont, nexa, pira, quil, rano, stad, tavi, vane, wick",
)

export const optionValues: Readonly<Record<OptionName, readonly string[]>> = {
  color: list(
    "black, white, navy blue, forest green, red, mustard yellow, dusty pink, light gray, teal, brown, purple, orange",
  ),
  size: list("x-small, small, medium, large, x-large, xx-large"),
  capacity: list("250 ml, 500 ml, 750 ml, 1 liter, 2 liter, 5 liter"),
  pack: list("pack of 1, pack of 2, pack of 4, pack of 6, pack of 12"),
}

/** Vocabulary of the short catalogue, as small as possible. */
export const short = {
  brands: list("Avo, Bim, Kiro, Luma, Nor, Pica, Soli, Tek"),
  kinds: [
    ...kinds("lamp/lamps, clock/clocks, mug/mugs, bag/bags", ["color"]),
    ...kinds("hat/hats, rug/rugs, coat/coats, tent/tents", ["color", "size"]),
  ],
  attributes: list("soft, quiet, sturdy, foldable, washable, striped, round, warm, slim, shiny"),
  optionValues: { color: list("red, blue, green"), size: list("small, large") },
} as const
