import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { openBenchmark } from "../../src/benchmark/benchmark.ts"
import { environmentDigest, promptDigest, tasksDigest } from "../../src/benchmark/digest.ts"
import { knownDigests } from "../../src/benchmark/digests.ts"
import { shippedBenchmarks } from "../../src/benchmark/shipped.ts"
import { surveyTasks } from "../../src/benchmark/survey.ts"
import type { GameTask } from "../../src/environment/alfworld/alfworld.ts"
import { present as hasGames, reason as noGames, useArchive } from "../environment/alfworld/archive.ts"
import { folder as catalogue, present as hasCatalogue, reason as noCatalogue } from "../environment/webshop/data.ts"

async function compute(name: string, options: object = {}, concurrency?: number) {
  const benchmark = shippedBenchmarks.find((one) => one.name === name)!
  const survey = await surveyTasks(benchmark, { ...benchmark.options, ...options }, { concurrency })
  const { environment, tasks, plays } = survey
  expect(tasks).toHaveLength(benchmark.tasks.count)
  expect(new Set(tasks.map(({ key }) => key)).size).toBe(tasks.length)
  // Each can be solved, and is by its expert, so that the rules of success are among what is covered.
  const solved = plays.filter(({ turns }) => turns.at(-1)?.result.metrics?.success === 1)
  expect(solved.length).toBeGreaterThan(benchmark.environment === "blackjack" ? 200 : 0.9 * tasks.length)
  const [responses, prompt] = [await environmentDigest(tasks, plays), await promptDigest(environment, plays)]
  return { tasks: await tasksDigest(tasks), environment: responses, prompt }
}

// The digests were computed in UTC, with 32 plays at once.
describe("a benchmark that ships is what it was", () => {
  const zone = process.env.TZ
  afterEach(() => {
    if (zone === undefined) delete process.env.TZ
    else process.env.TZ = zone
  })

  const generated = shippedBenchmarks.filter(({ places }) => places.length === 0).map(({ name }) => name)
  it.each(generated)("%s, whatever the hour and however much is played at once", async (name) => {
    process.env.TZ = "Pacific/Kiritimati"
    expect(await compute(name, {}, 3)).toEqual(knownDigests[name])
  })

  it.skipIf(!hasCatalogue)(`webshop/test@1${noCatalogue}`, async () => {
    expect(await compute("webshop/test@1", { data: catalogue })).toEqual(knownDigests["webshop/test@1"])
  })

  describe.skipIf(!hasGames)(`of ALFWorld's own games${noGames}`, () => {
    const games = useArchive()
    let folder = ""
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "gigpo-benchmark-"))
      for (const split of ["valid_seen", "valid_unseen"]) {
        const [from, to] = [join(games(), "json_2.1.1", split), join(folder, split)]
        await mkdir(to)
        // Put down the other way round, which some disks tell.
        for (const name of (await readdir(from)).sort().reverse())
          await cp(join(from, name), join(to, name), { recursive: true })
      }
    })
    afterAll(() => rm(folder, { recursive: true }))

    it.each(["alfworld/seen@1", "alfworld/unseen@1"])("%s, in whatever order the disk has them", async (name) => {
      expect(await compute(name, { data: folder }, 7)).toEqual(knownDigests[name])
    })

    it("rejects games that answer otherwise, and a set that is not whole", async () => {
      const { tasks } = await openBenchmark("alfworld/unseen@1", { data: folder })
      const game = join(folder, (tasks[5]!.task as GameTask).game)
      const text = await readFile(game, "utf8")
      await writeFile(game, text.replaceAll("You pick up the", "You grab the"))
      const opened = () => openBenchmark("alfworld/unseen@1", { data: folder })
      const refusal = (message: RegExp) => ({ code: "BAD_DATA", message: expect.stringMatching(message) })
      await expect(opened()).rejects.toMatchObject(
        refusal(/the tasks are the same, but the environment responds differently/),
      )
      await rm(game)
      await expect(opened()).rejects.toMatchObject(refusal(/there are 133 tasks instead of 134/))
    })
  })

  it("and all of them are known", () => {
    expect(Object.keys(knownDigests)).toEqual(shippedBenchmarks.map(({ name }) => name))
    expect(new Set(Object.values(knownDigests).map(({ environment }) => environment)).size).toBe(
      shippedBenchmarks.length,
    )
  })
})
