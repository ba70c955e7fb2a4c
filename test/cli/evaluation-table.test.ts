import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { resolveConfig } from "../../src/cli/config/resolve.ts"
import { evaluationTable, unreadable } from "../../src/cli/terminal/evaluation-table.ts"
import type { EvaluationReport } from "../../src/runs/report.ts"
import { built, gigpo, tiny } from "./gigpo.ts"

const config = (...sets: string[]) => resolveConfig("model: m\nenvironment: sokoban\n", sets)
const report = (changes: Partial<EvaluationReport>): EvaluationReport => ({
  ...{ episodes: 64, failed: 0, success: 0, successInterval: [0, 0.06], meanReturn: 1, meanSteps: 3 },
  metrics: { success: 0, clicks: 7 },
  ...changes,
})

describe("the lines of an evaluation", () => {
  it("name the temperature, that of training, and how many completions could be read", () => {
    const lines = evaluationTable(
      report({ valid: 0.75, completionsTruncated: 0.5 }),
      config("training.rollout.maxCompletionTokens=8"),
    )
    expect(lines).toContain("  valid           75.0 % of the completions; 50.0 % truncated at 8 tokens")
    expect(lines).toContain("  temperature     0.4 (training.evaluation.temperature); training samples at 1")
    expect(evaluationTable(report({ valid: 1, completionsTruncated: 0 }), config())).toContain(
      "  valid           100.0 % of the completions",
    )
    const untold = evaluationTable(report({}), config("training.evaluation.temperature=0"))
    expect(untold.join("\n")).not.toContain("valid")
    expect(untold.at(-1)).toMatch(/temperature {5}0 /)
  })

  it.each<[Partial<EvaluationReport>, RegExp | undefined]>([
    [
      { valid: 0, completionsTruncated: 0 },
      /^None of the completions could be parsed as actions of sokoban\. Likely causes: a model .*; a chat template [^;]*\.$/,
    ],
    [
      { valid: 0, completionsTruncated: 0.9 },
      /chat template .*; truncated completions: 90\.0 % reached training\.rollout\.maxCompletionTokens=8\.$/,
    ],
    [{ valid: 0.05, completionsTruncated: 0 }, /^Only 5\.0 % of the completions/],
    [{ valid: 0.1, completionsTruncated: 1 }, undefined],
    [{}, undefined],
  ])("%j gives likely causes: %s", (changes, expected) => {
    const told = unreadable(report(changes), "sokoban", 8)
    if (expected) expect(told).toMatch(expected)
    else expect(told).toBeUndefined()
  })
})

describe.skipIf(!built)("gigpo evaluate (needs dist: npm run build:ts)", () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-evaluation-"))
    expect(await gigpo(["init", "sokoban", "small", ...tiny], { cwd: folder })).toMatchObject({ code: 0 })
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  it("says why a model that says nothing readable fails, and keeps its data apart", async () => {
    // Random weights.
    const { code, stdout, stderr } = await gigpo(["evaluate", "small/config.yaml", "--json"], { cwd: folder })
    expect(code).toBe(0)
    expect(stderr).toMatch(/^None of the completions could be parsed as actions of sokoban\./)
    expect(JSON.parse(stdout)).toMatchObject({ temperature: 0.4, valid: 0, completionsTruncated: expect.any(Number) })
    const plain = await gigpo(["evaluate", "small/config.yaml"], { cwd: folder })
    expect(plain.stderr).toBe("")
    expect(plain.stdout).toMatch(/^None of the completions could be parsed/m)
    expect(plain.stdout).toMatch(/^ {2}valid +0\.0 % of the completions/m)
    expect(plain.stdout).toMatch(/^ {2}temperature +0\.4 .*training samples at 0.6$/m)
  })
})
