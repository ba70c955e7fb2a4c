import { readFileSync } from "node:fs"
import { rm } from "node:fs/promises"
import { afterAll, describe, expect, it, vi } from "vitest"
import { parse } from "yaml"

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8")

it("docs/environments.md shows examples/guess.ts, word for word", () => {
  expect(read("docs/environments.md")).toContain(`\`\`\`ts\n${read("examples/guess.ts")}\`\`\``)
})

it("examples/sokoban.ts and examples/sokoban.yaml are one recipe", () => {
  const program = read("examples/sokoban.ts")
  const { sft, training } = parse(read("examples/sokoban.yaml"))
  const { name: _, ...estimator } = training.estimator
  const { iterations, groups, batchSteps, optimizer } = training
  const settings = [sft, { iterations, groups, batchSteps }, training.rollout, estimator, optimizer ?? {}]
  for (const [key, value] of settings.flatMap(Object.entries))
    expect(program).toContain(`${key}: ${JSON.stringify(value)}`)
})

describe("the custom environment of docs/environments.md", () => {
  afterAll(() => rm("runs/guess", { recursive: true, force: true }))

  it("is a program of at most 60 lines", () => {
    const program = read("examples/guess.ts")
    expect(program.trimEnd().split("\n").length).toBeLessThanOrEqual(60)
  })

  it("keeps its promises, trains and gets good at it", async () => {
    const log = vi.spyOn(console, "log").mockImplementation(() => {})
    await import("../examples/guess.ts")
    const lines = log.mock.calls
    log.mockRestore()
    expect(lines.slice(0, -1).map(([iteration]) => iteration)).toEqual(Array.from({ length: 30 }, (_, i) => i + 1))
    const [{ episodes, failed, success }] = lines.at(-1) as [{ episodes: number; failed: number; success: number }]
    expect({ episodes, failed }).toEqual({ episodes: 256, failed: 0 })
    const [, before] = lines[1] as [number, number]
    expect(success).toBeGreaterThan(before)
  })
})
