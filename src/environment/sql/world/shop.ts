import type { Random } from "../../../util/random.ts"

/** Data of a shop: items with prices and makers, towns of the makers, and sales by day. */
export interface Shop {
  readonly items: readonly {
    readonly name: string
    readonly price: number
    readonly stock: number
    readonly maker: string
  }[]
  readonly makers: readonly { readonly name: string; readonly town: string }[]
  readonly sales: readonly { readonly day: string; readonly item: string; readonly count: number }[]
}

const itemNames = "apple bread candle drum fig glass hat ink jar kite lamp nut".split(" ")
const makerNames = "Ada Ben Cleo Dan Eve Finn".split(" ")
const towns = "Bern Cork Linz Nice Oslo Rome".split(" ")
const days = "Mon Tue Wed Thu Fri".split(" ")

/** Generates a shop. All shops have the same names with different relations. */
export function makeShop(random: Random): Shop {
  const one = <T>(list: readonly T[]) => list[random.below(list.length)]!
  const makers = random.shuffled(makerNames).slice(0, 4)
  const items = random.shuffled(itemNames).slice(0, 6)
  return {
    makers: makers.map((name) => ({ name, town: one(towns) })),
    items: items.map((name) => ({ name, price: 2 + random.below(8), stock: 1 + random.below(9), maker: one(makers) })),
    sales: items.flatMap((item) =>
      random
        .shuffled(days)
        .slice(0, 1 + random.below(3))
        .map((day) => ({ day, item, count: 1 + random.below(9) })),
    ),
  }
}

/** SQL script that creates the database of a shop. */
export function shopScript({ items, makers, sales }: Shop): string {
  const rows = (table: string, values: readonly object[]) =>
    `INSERT INTO ${table} VALUES ${values.map((row) => `(${Object.values(row).map(literal).join(", ")})`).join(", ")};`
  return [
    ...shopSchema.map((table) => `${table};`),
    rows("maker", makers),
    rows("item", items),
    rows("sale", sales),
  ].join("\n")
}

const shopSchema = [
  "CREATE TABLE maker (name TEXT PRIMARY KEY, town TEXT)",
  "CREATE TABLE item (name TEXT PRIMARY KEY, price INTEGER, stock INTEGER, maker TEXT REFERENCES maker)",
  "CREATE TABLE sale (day TEXT, item TEXT REFERENCES item, count INTEGER)",
]

function literal(value: string | number): string {
  return typeof value === "number" ? String(value) : `'${value.replaceAll("'", "''")}'`
}
