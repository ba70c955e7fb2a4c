import { existsSync, readFileSync } from "node:fs"
import { gunzipSync } from "node:zlib"
import { beforeAll, describe, expect, it } from "vitest"
import { type Product, readProduct } from "../../src/environment/webshop/product.ts"
import { productText } from "../../src/environment/webshop/product-text.ts"
import { analyse } from "../../src/retrieval/analyse.ts"
import { Bm25Index } from "../../src/retrieval/bm25.ts"

const folder = new URL("../../../shared/data/webshop/", import.meta.url)
const present = existsSync(folder)
const reason = present ? "" : " (skipped: ../shared/data/webshop is not there)"
const lines = (name: string) =>
  gunzipSync(readFileSync(new URL(name, folder)))
    .toString()
    .trimEnd()
    .split("\n")

interface Ranking {
  readonly query: string
  readonly tokens: string[]
  readonly total: number
  readonly hits: [string, number][]
}

describe.skipIf(!present)(`recordings of Lucene${reason}`, () => {
  let products: Product[] = []
  let rankings: Ranking[] = []
  let index: Bm25Index

  beforeAll(async () => {
    const entries: unknown[] = JSON.parse(readFileSync(new URL("items_shuffle_1000.json", folder), "utf8"))
    products = entries.map((entry, i) => readProduct(entry, [], `product ${i + 1}`))
    rankings = lines("lucene_rankings.jsonl.gz").map((line) => JSON.parse(line))
    index = await Bm25Index.build(products.map((product) => ({ id: product.asin, text: productText(product) })))
  })

  it("have the same terms in all 1,000 texts and 501 queries", () => {
    const recorded = lines("lucene_tokens.tsv.gz").map((line) => line.split("\t"))
    expect(recorded).toHaveLength(1000)
    for (const [i, [asin, tokens]] of recorded.entries())
      expect([products[i]!.asin, analyse(productText(products[i]!)).join(" ")]).toEqual([asin, tokens])
    expect(rankings).toHaveLength(501)
    for (const { query, tokens } of rankings) expect(analyse(query)).toEqual(tokens)
  })

  it("have the same hits in the same order with the same scores, to the bit, and the same totals", () => {
    for (const { query, total, hits } of rankings) {
      const expected = hits.map(([id, score]) => ({ id, score: Math.fround(score) }))
      expect({ query, hits: index.search(query).map(({ id, score }) => ({ id, score })) }).toEqual({
        query,
        hits: expected,
      })
      expect(index.total(query)).toBe(total)
    }
  })
})
