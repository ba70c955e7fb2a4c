import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { estimatorTopics } from "../vectors/estimators.ts"
import { compareFile } from "../vectors/run.ts"

const file = fileURLToPath(new URL("../../../shared/vectors/baselines.json", import.meta.url))

describe.skipIf(!existsSync(file))("advantages recorded from verl (skipped where ../shared is absent)", () => {
  it("agree with every estimator that verl has too", async () => {
    const reports = (await compareFile(file)).filter(({ topic }) => Object.hasOwn(estimatorTopics, topic))
    expect(reports.map(({ topic }) => topic).sort()).toEqual(Object.keys(estimatorTopics).sort())
    for (const { topic, compared, differ, first, failed } of reports) {
      expect(compared, topic).toBeGreaterThan(40)
      expect({ topic, differ, first, failed }).toEqual({ topic, differ: 0, first: [], failed: [] })
    }
  })
})
