import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import type { Group } from "../../../src/rollout/hooks.ts"
import { recordedIterations } from "../../../src/view/record/folder.ts"
import { readEpisodes, readGroup, readRecordedIterations } from "../../../src/view/record/read.ts"
import { type RecordEpisodesOptions, recordEpisodes } from "../../../src/view/record/recorder.ts"
import { episode } from "../../training/episodes.ts"
import { all } from "../../training/tiny.ts"
import { bytes, group, plainGroups, record, said } from "./groups.ts"

let run: string
beforeEach(async () => {
  run = await mkdtemp(join(tmpdir(), "gigpo-evaluations-"))
})
afterEach(() => rm(run, { recursive: true, force: true }))

/** Held-out tasks, of which every third is solved. */
const heldOut = (count: number, word = "go"): Group[] =>
  Array.from({ length: count }, (_, task) =>
    group(task, [episode([said("a", "look", `${word} ${task}`)], { metrics: { success: task % 3 === 0 ? 1 : 0 } })]),
  )

async function evaluated(
  evaluations: readonly (readonly [iteration: number, groups: readonly Group[]])[],
  options: Partial<RecordEpisodesOptions> & { readonly from?: number } = {},
): Promise<void> {
  const { from = 0, ...rest } = options
  const observer = recordEpisodes({ tokenizer: bytes, ...rest })
  await observer.start!({ iteration: from, iterations: 99, directory: run })
  for (const [iteration, groups] of evaluations) observer.evaluation!(iteration, groups)
  await observer.end!({ iteration: 99 })
}

it("some episodes of an evaluation are recorded, the unsuccessful ones first, in the order of tasks", async () => {
  await evaluated([
    [0, heldOut(5)],
    [10, heldOut(20)],
  ])
  expect(await readdir(join(run, "episodes"))).toEqual(["evaluation-0.episodes", "evaluation-10.episodes"])
  const read = await all(readEpisodes(run, { phase: "evaluation" }))
  const tasks = (iteration: number) => read.filter((one) => one.iteration === iteration).map((one) => one.group)
  expect([tasks(0), tasks(10)]).toEqual([
    [0, 1, 2, 3, 4],
    [1, 2, 4, 5, 7, 8, 10, 11],
  ])
  const found = await readGroup(run, 10, 7, "evaluation")
  expect(found).toMatchObject({
    iteration: 10,
    group: 7,
    episodes: [{ metrics: { success: 0 }, steps: [{ action: "go 7" }] }],
  })
  expect(found!.episodes[0]!.steps[0]).not.toHaveProperty("advantage")
  expect(
    (await readRecordedIterations(run, { phase: "evaluation", from: 5 })).map(({ iteration }) => iteration),
  ).toEqual([10])
})

it("they are no episodes of the training", async () => {
  await record(run, [[10, plainGroups(1)]])
  await evaluated([[10, heldOut(3)]], { from: 10 })
  expect(await recordedIterations(run)).toEqual([10])
  expect((await all(readEpisodes(run))).map(({ episodes }) => episodes.length)).toEqual([2])
  expect(await readGroup(run, 10, 2)).toBeUndefined()
  await expect(all(readEpisodes(run, { phase: "other" as never }))).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
})

it("as many are recorded and kept as the options say", async () => {
  await evaluated([[1, heldOut(9)]], { evaluation: 2 })
  expect((await all(readEpisodes(run, { phase: "evaluation" }))).map((one) => one.group)).toEqual([1, 2])
  await evaluated([[1, heldOut(9)]], { evaluation: 0 })
  await evaluated([[1, heldOut(9)]], { every: 0 })
  expect(await recordedIterations(run, "evaluation")).toEqual([])
  await record(run, [[5, plainGroups(1)]])
  await evaluated(
    [5, 10, 15].map((iteration) => [iteration, heldOut(1)]),
    { keep: 2, from: 5 },
  )
  expect([await recordedIterations(run, "evaluation"), await recordedIterations(run)]).toEqual([[10, 15], [5]])
})

it("a run that goes back repeats its evaluations", async () => {
  await evaluated([0, 5, 10].map((iteration) => [iteration, heldOut(1, "old")]))
  await evaluated([[5, heldOut(1, "new")]], { from: 5 })
  expect(await recordedIterations(run, "evaluation")).toEqual([0, 5])
  const actions = (await all(readEpisodes(run, { phase: "evaluation" }))).map(
    ({ episodes }) => episodes[0]!.steps[0]!.action,
  )
  expect(actions).toEqual(["old 0", "new 0"])
})
