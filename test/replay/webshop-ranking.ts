import { join } from "node:path"
import { readElements } from "../../src/environment/webshop/json-elements.ts"
import { readProduct } from "../../src/environment/webshop/product.ts"
import { productText } from "../../src/environment/webshop/product-text.ts"
import { analyse } from "../../src/retrieval/analyse.ts"
import { Bm25Index } from "../../src/retrieval/bm25.ts"
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
  const documents: { id: string; text: string }[] = []
  await readElements(path, ({ value, where }) => {
    const product = readProduct(value, [], where)
    documents.push({ id: product.asin, text: productText(product) })
    return false
  })
  return documents
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
