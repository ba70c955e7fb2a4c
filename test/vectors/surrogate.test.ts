import { existsSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { compare } from "./compare.ts"
import { surrogateTopics } from "./surrogate.ts"
import type { Vector } from "./topic.ts"

const file = new URL("../../../shared/vectors/baselines.json", import.meta.url)
const absent = existsSync(file) ? "" : " (skipped: ../shared/vectors/baselines.json is not here)"

describe.skipIf(absent)(`the clipped surrogate and its KL against the shared vectors${absent}`, () => {
  it.each(Object.keys(surrogateTopics))("%s", async (topic) => {
    const vectors: [string, Vector][] = Object.entries(JSON.parse(readFileSync(file, "utf8")))
    const own = vectors.filter(([key]) => key.split("/")[0] === topic)
    expect(own.length).toBeGreaterThan(0)
    for (const [key, vector] of own) {
      const { compared, first } = compare(
        key,
        vector.expected,
        await surrogateTopics[topic]!(vector),
        vector.inputs.mask,
      )
      expect(first).toEqual([])
      expect(compared).toBeGreaterThan(3)
    }
  })
})
