import { similarityRatio } from "../../src/credit/similarity.ts"
import { normalizeAnswer } from "../../src/environment/search/answer.ts"
import type { Difference, Replay } from "./replay.ts"

/** What CPython's difflib gave for two texts, or what the reference's normalisation made of an answer. */
type Record =
  | { readonly a: string; readonly b: string; readonly ratio: number }
  | { readonly in: string; readonly out: string }

/** Every ratio and every normalised answer must be equal, ratios to the bit. */
export const replaySearchSimilarity: Replay = async function* (_data, records) {
  let number = 0
  for await (const record of records as AsyncIterable<Record>) yield differences(record, ++number)
}

function differences(record: Record, number: number): Difference[] {
  const [what, expected, actual] =
    "ratio" in record
      ? ["ratio", record.ratio, similarityRatio(record.a, record.b)]
      : [`normalized ${JSON.stringify(record.in)}`, record.out, normalizeAnswer(record.in)]
  if (expected === actual) return []
  return [{ where: `record ${number}: ${what}`, expected: JSON.stringify(expected), actual: JSON.stringify(actual) }]
}
