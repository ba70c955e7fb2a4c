import { Random } from "../../../util/random.ts"
import type { SqlTask } from "../task.ts"
import { makeShop, type Shop, shopScript } from "./shop.ts"

/** Question about a shop with two solutions: one statement, or single lookups and a formula of their values. */
export interface ShopQuestion {
  readonly question: string
  /** Statement whose result is the answer. */
  readonly gold: string
  /** Statements that give one value each. A statement may refer to values of earlier ones: `$1` is the value of the first. */
  readonly lookups: readonly string[]
  /** Formula of the values that gives the answer. Without it the value of the last lookup is the answer. */
  readonly sum?: string
}

type Kind = (shop: Shop, random: Random) => ShopQuestion

const one = <T>(list: readonly T[], random: Random) => list[random.below(list.length)]!
const priceOf = (item: string) => `SELECT price FROM item WHERE name = '${item}'`
const soldOf = (item: string) => `SELECT sum(count) FROM sale WHERE item = '${item}'`

const kinds = {
  price: ({ items }, random) => {
    const { name } = one(items, random)
    return { question: `What is the price of one ${name}?`, gold: priceOf(name), lookups: [priceOf(name)] }
  },
  sold: ({ items }, random) => {
    const { name } = one(items, random)
    return { question: `How many pieces of ${name} were sold?`, gold: soldOf(name), lookups: [soldOf(name)] }
  },
  town: ({ items }, random) => {
    const { name } = one(items, random)
    return {
      question: `In which town is ${name} made?`,
      gold: `SELECT town FROM item JOIN maker ON maker.name = item.maker WHERE item.name = '${name}'`,
      lookups: [`SELECT maker FROM item WHERE name = '${name}'`, "SELECT town FROM maker WHERE name = '$1'"],
    }
  },
  basket: ({ items }, random) => {
    const [a, b] = random.shuffled(items) as [Shop["items"][number], Shop["items"][number]]
    const [m, n] = [2 + random.below(8), 2 + random.below(8)]
    const of = (count: number, name: string) => `${count} * (${priceOf(name)})`
    return {
      question: `What do ${m} ${a.name} and ${n} ${b.name} cost?`,
      gold: `SELECT ${of(m, a.name)} + ${of(n, b.name)}`,
      lookups: [priceOf(a.name), priceOf(b.name)],
      sum: `${m} * $1 + ${n} * $2`,
    }
  },
  earned: ({ items }, random) => {
    const { name } = one(items, random)
    return {
      question: `How much was earned with ${name}?`,
      gold: `SELECT (${priceOf(name)}) * (${soldOf(name)})`,
      lookups: [priceOf(name), soldOf(name)],
      sum: "$1 * $2",
    }
  },
  change: ({ items }, random) => {
    const { name } = one(items, random)
    const count = 2 + random.below(8)
    return {
      question: `What is left of 99 after buying ${count} ${name}?`,
      gold: `SELECT 99 - ${count} * (${priceOf(name)})`,
      lookups: [priceOf(name)],
      sum: `99 - ${count} * $1`,
    }
  },
  dearest: ({ items }, random) => {
    const maker = one(items, random).maker
    const gold = `SELECT name FROM item WHERE maker = '${maker}' ORDER BY price DESC, name LIMIT 1`
    return {
      question: `Which is the dearest item that ${maker} makes, the first by name of several?`,
      gold,
      lookups: [gold],
    }
  },
  list: (_shop, random) => {
    const least = 4 + random.below(4)
    const gold = `SELECT name, stock FROM item WHERE price > ${least} ORDER BY name`
    return {
      question: `Which items cost more than ${least}, by name, and how many of each are in stock?`,
      gold,
      lookups: [gold],
    }
  },
  perMaker: (_shop, _random) => {
    const gold = "SELECT maker, count(*) FROM item GROUP BY maker"
    return { question: "How many items does each maker of items make?", gold, lookups: [gold] }
  },
} satisfies Record<string, Kind>

export type QuestionKind = keyof typeof kinds

export const questionKinds = Object.keys(kinds) as readonly QuestionKind[]

/** First seed of test shops. Shops of training have lower seeds, so that answers of the test cannot be memorized. */
const firstTestShop = 2 ** 20

/** Endless questions, each about a different shop: drawn at random for training, and fixed for the test. */
export function* shopQuestions(
  split: "train" | "test",
  requestedKinds: readonly QuestionKind[],
  random: Random,
): Generator<SqlTask & { readonly plan: Pick<ShopQuestion, "lookups" | "sum"> }, never, undefined> {
  const draw = random.derive("sql questions")
  for (let i = 0; ; i++) {
    const seed = split === "train" ? draw.below(firstTestShop) : firstTestShop + i
    const own = new Random(seed).derive("shop")
    const shop = makeShop(own)
    const kind = split === "train" ? one(requestedKinds, draw) : requestedKinds[i % requestedKinds.length]!
    const { question, gold, ...plan } = kinds[kind](shop, own.derive(kind))
    yield { id: `${seed}, ${kind}`, database: { script: shopScript(shop) }, question, gold, source: kind, plan }
  }
}
