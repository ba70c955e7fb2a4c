import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { readProduct } from "../environment/webshop/product.ts"
import { productText } from "../environment/webshop/product-text.ts"
import { GigpoError } from "../errors.ts"
import { analyse } from "../retrieval/analyse.ts"
import { Bm25Index } from "../retrieval/bm25.ts"
import type { Difference, Replay } from "./replay.ts"

/** What Lucene found: the query's terms, how many products match, and the first of them with their scores in float32. */
interface Ranking {
  readonly query: string
  readonly tokens: readonly string[]
  readonly total: number
  readonly hits: readonly (readonly [asin: string, score: number])[]
}

const catalogue = "items_shuffle_1000.json"

/** Every query must have the same terms, and find as many products, the same first ones, in the same order with the same scores. */
export const replayWebshopRanking: Replay = async function* (data, records) {
  const index = await Bm25Index.build(await readDocuments(join(data, catalogue)))
  for await (const record of records as AsyncIterable<Ranking>) yield rankingDifferences(index, record)
}

async function readDocuments(path: string): Promise<{ id: string; text: string }[]> {
  const text = await readFile(path, "utf8").catch((cause: Error) => {
    throw new GigpoError("IO", `Cannot read the catalogue ${path}: ${cause.message}.`, { cause })
  })
  let entries: unknown
  try {
    entries = JSON.parse(text)
  } catch (cause) {
    throw new GigpoError("BAD_DATA", `${path} is not JSON (${(cause as Error).message}); download it anew.`, { cause })
  }
  if (!Array.isArray(entries)) throw new GigpoError("BAD_DATA", `${path} must be a list of products.`)
  return entries.map((entry, i) => {
    const product = readProduct(entry, [], `${path}, product ${i + 1}`)
    return { id: product.asin, text: productText(product) }
  })
}

function rankingDifferences(index: Bm25Index, { query, tokens, total, hits }: Ranking): Difference[] {
  const differences: Difference[] = []
  const compare = (what: string, expected: unknown, actual: unknown) => {
    const [want, found] = [JSON.stringify(expected), JSON.stringify(actual)]
    if (want !== found) differences.push({ where: `"${query}": ${what}`, expected: want, actual: found })
  }
  compare("terms", tokens, analyse(query))
  compare("products that match", total, index.total(query))
  const found = index.search(query, hits.length)
  for (const [i, [asin, score]] of hits.entries())
    compare(`hit ${i + 1}`, [asin, Math.fround(score)], [found[i]?.id, found[i]?.score])
  return differences
}
