import { setImmediate } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { analyse } from "../../src/retrieval/analyse.ts"
import { Bm25Index } from "../../src/retrieval/bm25.ts"
import { byteToLength, lengthToByte } from "../../src/retrieval/length-byte.ts"

function documentsOf(...texts: string[]) {
  return texts.map((text, i) => ({ id: `d${i}`, text }))
}

describe("Bm25Index", () => {
  it("scores as the formula says, worked by hand", async () => {
    const index = await Bm25Index.build(documentsOf("apple banana", "apple apple cherry", "durian"))
    // N = 3, average length 2; apple: df 2, idf ln(1 + 1.5 / 2.5).
    const idf = Math.log(1.6)
    const score = (count: number, length: number) => (idf * count) / (count + 0.9 * (0.6 + (0.4 * length) / 2))
    const hits = index.search("Apples!")
    expect(hits.map((hit) => [hit.document, hit.id])).toEqual([
      [1, "d1"],
      [0, "d0"],
    ])
    expect(hits[0]!.score).toBeCloseTo(score(2, 3), 6)
    expect(hits[1]!.score).toBeCloseTo(score(1, 2), 6)
    expect(hits.every((hit) => Math.fround(hit.score) === hit.score)).toBe(true)
    expect(index.total("apple durian")).toBe(3)
  })

  it("counts a term as often as the query says it", async () => {
    const index = await Bm25Index.build(documentsOf("apple banana", "cherry"))
    const once = index.search("apple")[0]!.score
    expect(index.search("apple apple apple")[0]!.score).toBeCloseTo(3 * once, 6)
  })

  it("has b and k1 as options", async () => {
    const texts = documentsOf("apple", "apple pear plum fig kiwi", "apple apple")
    const scores = async (options: { k1?: number; b?: number }) => {
      const hits = (await Bm25Index.build(texts, options)).search("apple")
      return new Map(hits.map((hit) => [hit.id, hit.score]))
    }
    const flat = await scores({ b: 0 })
    expect(flat.get("d0")).toBe(flat.get("d1"))
    const binary = await scores({ k1: 0 })
    expect(binary.get("d0")).toBe(binary.get("d2"))
    const full = await scores({ b: 1 })
    expect(full.get("d0")).toBeGreaterThan(full.get("d1")!)
    for (const options of [{ k1: -1 }, { k1: Number.NaN }, { b: 1.1 }, { b: -0.1 }])
      await expect(Bm25Index.build(texts, options)).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
  })

  it("orders equal scores by id, whatever the order they came in", async () => {
    const ids = ["b", "10", "a", "9", "é", "Z", "aa"]
    const index = await Bm25Index.build(ids.map((id) => ({ id, text: "same text" })))
    expect(index.search("text").map((hit) => hit.id)).toEqual(["10", "9", "Z", "a", "aa", "b", "é"])
    expect(index.search("text", 3).map((hit) => hit.id)).toEqual(["10", "9", "Z"])
    expect(index.search("text").map((hit) => ids[hit.document])).toEqual(["10", "9", "Z", "a", "aa", "b", "é"])
  })

  it("finds nothing for queries without a known term, in empty texts and in an empty collection", async () => {
    const index = await Bm25Index.build(documentsOf("", "the of and", "fig"))
    expect([index.search(""), index.search("the"), index.search("xyzzy"), index.search("fig", 0)]).toEqual([
      [],
      [],
      [],
      [],
    ])
    expect(index.search("fig").map((hit) => hit.id)).toEqual(["d2"])
    const empty = await Bm25Index.build([])
    expect([empty.size, empty.search("fig"), empty.total("fig")]).toEqual([0, [], 0])
    expect(() => index.search("fig", -1)).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }))
  })

  it("ignores documents without terms in its statistics, as Lucene does", async () => {
    const bare = await Bm25Index.build(documentsOf("fig", "plum pear"))
    const padded = await Bm25Index.build([...documentsOf("fig", "plum pear"), { id: "x", text: "the" }])
    expect(padded.search("fig")).toEqual(bare.search("fig"))
  })

  it("counts terms beyond 255 times in a document", async () => {
    const texts = [255, 256, 300, 40, 31, 32, 1].map((count) => "fig ".repeat(count) + "pad ".repeat(400 - count))
    const index = await Bm25Index.build(documentsOf(...texts))
    // All of one length: more is better, ever so slightly.
    expect(index.search("fig").map((hit) => hit.id)).toEqual(["d2", "d1", "d0", "d3", "d5", "d4", "d6"])
    expect(new Set(index.search("fig").map((hit) => hit.score)).size).toBe(7)
  })

  it("is equal to a plain calculation over many segments", async () => {
    // More documents than one segment holds, short, of few words.
    let state = 99
    const below = (limit: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0
      return Math.floor((state / 2 ** 32) * limit)
    }
    const word = () => `w${Math.floor(60 * (below(1000) / 1000) ** 2)}`
    const texts = Array.from({ length: 70_000 }, () => Array.from({ length: 1 + below(30) }, word).join(" "))
    const index = await Bm25Index.build(texts.map((text, i) => ({ id: String(i), text })))
    const terms = texts.map(analyse)
    const average = terms.reduce((sum, list) => sum + list.length, 0) / texts.length
    for (const query of ["w0 w59", "w3", "w7 w7 w12 w40 nothing", "w1 w2 w3 w4 w5"]) {
      const scores = new Float64Array(texts.length)
      for (const term of analyse(query)) {
        const df = terms.filter((list) => list.includes(term)).length
        if (df === 0) continue
        const idf = Math.log(1 + (texts.length - df + 0.5) / (df + 0.5))
        for (const [i, list] of terms.entries()) {
          const count = list.filter((other) => other === term).length
          const length = byteToLength(lengthToByte(list.length))
          scores[i]! += (idf * count) / (count + 0.9 * (0.6 + (0.4 * length) / average))
        }
      }
      const expected = Array.from(scores, (score, i) => ({ score, id: String(i) }))
        .filter(({ score }) => score > 0)
        .sort((a, b) => b.score - a.score)
      expect(index.total(query)).toBe(expected.length)
      const hits = index.search(query, 200)
      expect(hits).toHaveLength(200)
      for (const [i, hit] of hits.entries()) {
        expect(hit.score).toBeCloseTo(expected[i]!.score, 4)
        expect(scores[Number(hit.id)]).toBeCloseTo(hit.score, 4)
      }
      expect(index.search(query, 200)).toEqual(hits)
    }
  })

  it("takes documents as they come, reports progress and lets others work", async () => {
    let turns = 0
    let running = true
    const others = (async () => {
      for (; running; turns++) await setImmediate()
    })()
    const seen: number[] = []
    async function* documents() {
      for (let i = 0; i < 20_000; i++) yield { id: String(i), text: `text number ${i} of many` }
    }
    const index = await Bm25Index.build(documents(), { onProgress: (count) => seen.push(count) })
    running = false
    await others
    expect(index.size).toBe(20_000)
    expect(index.search("19999").map((hit) => hit.id)).toEqual(["19999"])
    expect(seen.at(-1)).toBe(20_000)
    expect(seen).toEqual([...seen].sort((a, b) => a - b))
    expect(turns).toBeGreaterThan(3)
  })

  it("stops when the signal is aborted, and closes its source", async () => {
    const controller = new AbortController()
    let closed = false
    function* endless() {
      try {
        for (let i = 0; ; i++) yield { id: String(i), text: "over and over again" }
      } finally {
        closed = true
      }
    }
    const build = Bm25Index.build(endless(), {
      signal: controller.signal,
      onProgress: () => controller.abort(new Error("enough")),
    })
    await expect(build).rejects.toThrow("enough")
    expect(closed).toBe(true)
    await expect(Bm25Index.build([], { signal: AbortSignal.abort(new Error("before")) })).rejects.toThrow("before")
  })

  it("rejects documents that are none", async () => {
    const broken = [
      { id: "a", text: "fine" },
      { id: 3, text: "no" },
    ] as never[]
    await expect(Bm25Index.build(broken)).rejects.toMatchObject({ code: "BAD_DATA", message: /^Document 2 must have/ })
  })

  it("keeps lengths as Lucene does: exact to 39, then 4 bits", () => {
    const kept = (length: number) => byteToLength(lengthToByte(length))
    for (let length = 0; length < 40; length++) expect(kept(length)).toBe(length)
    expect([40, 41, 42, 43, 56, 59, 60, 1000, 100_000].map(kept)).toEqual([40, 40, 42, 42, 56, 56, 60, 984, 98_328])
    for (let byte = 0; byte < 256; byte++) expect(lengthToByte(byteToLength(byte))).toBe(byte)
    for (let length = 1; length < 5000; length++) expect(kept(length)).toBeGreaterThanOrEqual(kept(length - 1))
  })
})
