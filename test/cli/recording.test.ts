import { copyFile, mkdtemp, readdir, readFile, rm, truncate } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { completionText } from "../../src/view/data/recorded.ts"
import { episodesPath, recordedIterations } from "../../src/view/record/folder.ts"
import { readEpisodes, readRecordedIterations } from "../../src/view/record/read.ts"
import { all } from "../training/tiny.ts"
import { built, gigpo, tiny } from "./gigpo.ts"

describe.skipIf(!built)("episodes of gigpo train (needs dist: npm run build:ts)", () => {
  let folder: string
  let directory: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-recording-"))
    directory = join(folder, "small/run")
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  const run = async (...words: string[]) => await gigpo(words, { cwd: folder })
  const reports = async () =>
    (await readFile(join(directory, "metrics.jsonl"), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))

  it("are recorded, in agreement with the reports", async () => {
    expect(await run("init", "sokoban", "small", ...tiny)).toMatchObject({ code: 0 })
    expect(await run("train", "small/config.yaml", "--json")).toMatchObject({ code: 0 })
    expect(await recordedIterations(directory)).toEqual([1, 2, 3, 4, 5, 6])
    const summaries = await readRecordedIterations(directory)
    for (const { iteration, metrics } of (await reports()).slice(1)) {
      const groups = await all(readEpisodes(directory, { from: iteration, to: iteration }))
      const episodes = groups.flatMap((group) => group.episodes)
      const steps = episodes.flatMap((episode) => episode.steps)
      const mean = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0) / values.length
      expect(groups.map(({ group, episodes }) => [group, episodes.length])).toEqual([
        [0, 3],
        [1, 3],
      ])
      expect(mean(episodes.map((episode) => episode.return))).toBeCloseTo(metrics["episode/return"], 10)
      expect(mean(steps.map(({ advantage }) => advantage as number))).toBeCloseTo(metrics["advantage/mean"], 10)
      expect(new Set(steps.map(({ stepGroup }) => stepGroup)).size).toBe(metrics["step-group/count"])
      for (const step of steps) {
        expect(step.prompt).toContain(step.observation)
        expect(step.completion).toHaveLength(step.logProbs.length)
        if (step.finishReason === "stop") expect(completionText(step)).toMatch(/<\|im_end\|>$/)
        expect(step.stepAdvantage! + step.episodeAdvantage!).toBeCloseTo(step.advantage as number, 10)
      }
      expect(summaries[iteration - 1]).toMatchObject({
        iteration,
        return: episodes.map((one) => one.return),
        tokens: episodes.map((one) => one.steps.reduce((sum, { completion }) => sum + completion.length, 0)),
      })
    }
  })

  it("are replaced if the run resumes from an earlier checkpoint, also by fewer", async () => {
    const lost = await readFile(episodesPath(directory, 6))
    await copyFile(episodesPath(directory, 6), episodesPath(directory, 9))
    await rm(join(directory, "checkpoints/iteration-6"), { recursive: true })
    const less = ["--set", "recording.groups=1", "--set", "recording.keep=4"]
    expect(await run("train", "small/run/config.json", "--resume", "--json", ...less)).toMatchObject({ code: 0 })
    expect(await recordedIterations(directory)).toEqual([3, 4, 5, 6])
    const [before, after] = [
      await all(readEpisodes(directory, { from: 5, to: 5 })),
      await readFile(episodesPath(directory, 6)),
    ]
    expect(before).toHaveLength(1)
    expect(after.length).toBeLessThan(lost.length)
  })

  it("of one iteration are listed though those of another cannot be read", async () => {
    await truncate(episodesPath(directory, 5), 50)
    const list = (iteration: string) => run("episodes", "small/run", "--iteration", iteration)
    expect(await list("4")).toMatchObject({ code: 0, stdout: expect.stringContaining("4/0/0") })
    expect(await list("5")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/iteration-5\.episodes.*Remove it/),
    })
  })

  it("are not recorded if disabled", async () => {
    const none = ["--overwrite", "--json", "--set", "recording.every=0"]
    expect(await run("train", "small/config.yaml", ...none)).toMatchObject({ code: 0 })
    expect(await recordedIterations(directory)).toEqual([])
    for (const words of [
      ["episodes"],
      ["export", "--as", "jsonl", "--out", "all"],
      ["export", "--as", "parquet", "--out", "all"],
    ])
      expect(await run(...words, "small/run")).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/No episodes were/),
      })
    expect(await readdir(folder)).not.toContain("all")
    const wrong = await run("train", "small/config.yaml", "--overwrite", "--set", "recording.evry=0")
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/did you mean recording\.every/) })
  })
})
