import { describe, expect, it } from "vitest"
import { openCatalogue } from "../../../src/environment/webshop/catalogue.ts"
import { findCatalogue, openCatalogueFiles } from "../../../src/environment/webshop/catalogue-files.ts"
import type { Goal } from "../../../src/environment/webshop/goals.ts"
import { readGoal, replayWebshop } from "../../replay/webshop.ts"
import { folder, iterate, present, readJson, readLines, reason } from "./data.ts"

interface Episode {
  readonly goal: Parameters<typeof readGoal>[0]
  readonly steps: readonly { a: string | null; obs: string; r: number }[]
}

const open = async () => openCatalogue(await openCatalogueFiles(findCatalogue(folder, "synthetic")))

describe.skipIf(!present)(`recordings of WebShop${reason}`, () => {
  it.each([
    ["traces_goal.jsonl.gz", 709],
    ["traces_random.jsonl.gz", 1126],
  ])("%s: pages, actions, rewards and their parts are equal", async (name, steps) => {
    let count = 0
    for await (const differences of replayWebshop(folder, iterate(readLines(name)))) {
      count++
      expect(differences).toEqual([])
    }
    expect(count).toBe(steps)
  })

  it("replay detects differences", async () => {
    const [episode] = readLines<Episode>("traces_goal.jsonl.gz")
    const [first, ...others] = episode!.steps
    const last = others.at(-1)!
    const wrong = {
      ...episode,
      steps: [{ ...first, obs: `${first!.obs}.` }, ...others.slice(0, -1), { ...last, r: 0.25 }],
    }
    const found: (readonly unknown[])[] = []
    for await (const differences of replayWebshop(folder, iterate([wrong]))) found.push(differences)
    expect(found.map((differences) => differences.length)).toEqual([1, ...others.slice(1).map(() => 0), 1])
    await expect(replayWebshop(folder, iterate([{ goal: {} }])).next()).rejects.toMatchObject({ code: "BAD_DATA" })
  })

  it("prices equal those of the recordings", async () => {
    const { prices } = readJson<{ prices: Record<string, number> }>("prices_seed42.json")
    const catalogue = await open()
    const ours = Array.from({ length: catalogue.size }, (_, i) => [catalogue.product(i).asin, catalogue.price(i)])
    expect(ours).toEqual(Object.entries(prices))
  })

  it("the goals are the 6,910 of WebShop, with the recorded ones equal in all fields", async () => {
    const { goals } = await open()
    expect(goals.size).toBe(6910)
    const all = Array.from({ length: goals.size }, (_, i) => goals.at(i))
    const byText = new Map<string, Goal[]>()
    for (const goal of all) byText.set(goal.instruction, [...(byText.get(goal.instruction) ?? []), goal])
    for (const { goal } of [
      ...readLines<Episode>("traces_goal.jsonl.gz"),
      ...readLines<Episode>("traces_random.jsonl.gz"),
    ]) {
      expect(byText.get(goal.instruction_text)).toContainEqual(readGoal(goal))
    }
  })
})
