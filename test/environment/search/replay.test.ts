import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { readRecording } from "../../replay/recording.ts"
import type { Difference, Replay } from "../../replay/replay.ts"
import { replaySearchSimilarity } from "../../replay/search-similarity.ts"
import { replayWebshopRanking } from "../../replay/webshop-ranking.ts"

const data = fileURLToPath(new URL("../../../../shared/data/", import.meta.url))
const present = existsSync(data)
const reason = present ? "" : " (skipped: ../shared/data is not there)"

async function differencesOf(
  replay: Replay,
  folder: string,
  records: AsyncIterable<unknown>,
): Promise<(readonly Difference[])[]> {
  const found: (readonly Difference[])[] = []
  for await (const differences of replay(folder, records)) found.push(differences)
  return found
}

async function* some(...records: unknown[]) {
  yield* records
}

describe.skipIf(!present)(`recordings${reason}`, () => {
  it.each([
    [replayWebshopRanking, "webshop", "lucene_rankings.jsonl.gz", 501],
    [replaySearchSimilarity, "search", "difflib_ratios.jsonl.gz", 120],
    [replaySearchSimilarity, "search", "qa_normalize.jsonl", 25],
  ] as const)("are equal: %o %s/%s", async (replay, folder, file, count) => {
    const found = await differencesOf(replay, data + folder, readRecording(`${data}${folder}/${file}`))
    expect(found).toHaveLength(count)
    expect(found.flat()).toEqual([])
  })

  it("detect a different ranking", async () => {
    const { value } = await readRecording(`${data}webshop/lucene_rankings.jsonl.gz`).next()
    const record = value as { query: string; tokens: string[]; total: number; hits: [string, number][] }
    const [first, second, ...rest] = record.hits
    const wrong = [
      { ...record, total: 1 },
      { ...record, hits: [second, first, ...rest] },
      { ...record, hits: [[first![0], first![1] + 1e-4], second, ...rest] },
      { ...record, tokens: [] },
    ]
    const found = await differencesOf(replayWebshopRanking, `${data}webshop`, some(...wrong))
    expect(found.map((differences) => differences.map(({ where }) => where.split(": ").at(-1)))).toEqual([
      ["products that match"],
      ["hit 1", "hit 2"],
      ["hit 1"],
      ["terms"],
    ])
  })
})

describe("replays", () => {
  it("detect a different ratio and answer", async () => {
    const records = some({ a: "ab", b: "ab", ratio: 0.5 }, { in: "The a", out: "a" }, { a: "", b: "", ratio: 1 })
    expect(await differencesOf(replaySearchSimilarity, "", records)).toEqual([
      [{ where: "record 1: ratio", expected: "0.5", actual: "1" }],
      [{ where: 'record 2: normalized "The a"', expected: '"a"', actual: '""' }],
      [],
    ])
  })

  it("report a missing catalogue", async () => {
    await expect(differencesOf(replayWebshopRanking, "/nowhere", some())).rejects.toMatchObject({ code: "BAD_DATA" })
  })
})
