import { cp, link, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { newestModel } from "../../src/model-files/run-models.ts"
import { writeCheckpoint } from "../../src/runs/checkpoint.ts"
import { recover } from "../../src/runs/recover.ts"
import { Run } from "../../src/runs/run.ts"
import { writeFailure } from "../../src/training/guards/failure.ts"
import { readEpisodes, readGroup, readRecordedIterations } from "../../src/view/record/read.ts"
import { describeRun, findRuns } from "../../src/view/runs.ts"
import { tensorBoard } from "../../src/view/sinks/tensorboard.ts"
import { FakePolicy } from "../training/fake-policy.ts"
import { all } from "../training/tiny.ts"
import { plainGroups, record } from "../view/record/groups.ts"
import { kinds, outcomeOf, type Place, putLink, remove, secret, tree } from "./links.ts"
import { config, putRun } from "./run-place.ts"

let root: string
let received: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "gigpo-received-"))
  received = join(root, "run")
  await putRun(received, 2, [1, 2])
  const run = await Run.open(received, config, { resume: true })
  await run.saveModel(new FakePolicy())
  await run.close()
  await record(received, [[1, plainGroups(1)]])
  const board = tensorBoard()
  await board.start!({ directory: received, iteration: 0, iterations: 1 })
  await board.report!({ iteration: 1, metrics: {} })
  await board.end!({ iteration: 1 })
})
afterAll(async () => await rm(root, { recursive: true }))

const entries = ["config.json", "metrics.jsonl", "run.lock", "fork.json", "mlflow.json"]
const folders = ["checkpoints", "model", "episodes", "tensorboard"]
const aside = [".gigpo-replacing", ".gigpo-replaced", ".gigpo-discarded"]
const step = ["checkpoints/iteration-2", "checkpoints/iteration-2/manifest.json", "checkpoints/iteration-2/weights.bin"]
const model = ["model/gigpo.json", "model/weights.bin", "model/.gigpo-ready"]
const episodes = ["episodes/iteration-1.episodes"]
const ofRun = [...entries, ...folders]
const levels = [...ofRun, ...aside, ...step, "checkpoints/iteration-2/.gigpo-ready", ...model, ...episodes, "failure-3"]

const failure = {
  how: { progress: { iteration: 2 }, random: { key: [0, 0] } },
  rows: [],
  loss: {},
  options: {},
  error: new Error("NaN"),
  policy: {},
}

/** What opens the folder of a run, and the levels at which it must reject a link. */
const calls: readonly [string, (run: string) => Promise<unknown>, readonly string[]][] = [
  [
    "Run.open to resume it, all that is written then",
    async (directory) => {
      await using run = await Run.open(directory, config, { resume: true, onWarning: () => {} })
      await run.check(new FakePolicy())
      await run.restore(new FakePolicy())
      await run.log({ iteration: 3, metrics: {} })
      await run.saveCheckpoint(3, new FakePolicy(), 1)
      await run.saveModel(new FakePolicy())
    },
    [...ofRun, ...step, "checkpoints/iteration-2/.gigpo-ready", "model/gigpo.json", "model/.gigpo-ready"],
  ],
  [
    "Run.open to overwrite it",
    async (directory) => {
      await using run = await Run.open(directory, { ...config, seed: 4 }, { overwrite: true, onWarning: () => {} })
      await run.log({ iteration: 1, metrics: {} })
      await run.saveCheckpoint(1, new FakePolicy(), 1)
    },
    [...ofRun, ...step, "model/gigpo.json", "model/weights.bin"],
  ],
  [
    "a fork of it",
    async (directory) => {
      const own = join(directory, "..", "fork")
      await using run = await Run.open(own, config, { fork: directory, onWarning: () => {} })
      await run.begin()
      await run.restore(new FakePolicy())
    },
    [...ofRun, ...step, "checkpoints/iteration-2/.gigpo-ready"],
  ],
  ["describeRun", (directory) => describeRun(directory), ofRun],
  ["findRuns above it", (directory) => findRuns(join(directory, "..")), []],
  ["newestModel", (directory) => newestModel(directory), ["checkpoints", "model", "model/gigpo.json"]],
  ["readEpisodes", (directory) => all(readEpisodes(directory)), ["episodes", ...episodes]],
  ["readRecordedIterations", (directory) => readRecordedIterations(directory), ["episodes", ...episodes]],
  ["readGroup", (directory) => readGroup(directory, 1, 0), ["episodes", ...episodes]],
  [
    "recordEpisodes",
    (directory) =>
      record(
        directory,
        [
          [1, plainGroups(1)],
          [2, plainGroups(1)],
        ],
        { keep: 1 },
      ),
    ["episodes"],
  ],
  [
    "tensorBoard",
    async (directory) => {
      const board = tensorBoard()
      await board.start!({ directory, iteration: 0, iterations: 1 })
      await board.report!({ iteration: 1, metrics: {} })
      await board.end!({ iteration: 1 })
    },
    ["tensorboard", "metrics.jsonl"],
  ],
  [
    "writeCheckpoint in place of one",
    (directory) => writeCheckpoint(join(directory, "checkpoints"), 2, new FakePolicy()),
    ["checkpoints", ...step],
  ],
  ["writeFailure", (directory) => writeFailure(directory, failure as never), ["failure-3"]],
  ["recover", recover, [...ofRun, "model/.gigpo-ready", "checkpoints/iteration-2/.gigpo-ready"]],
]

/** Nothing outside was changed or copied into the folder or an output, and nothing was waited for. */
async function judge(place: Place, before: Record<string, string>, call: (run: string) => Promise<unknown>) {
  const { code, text } = await outcomeOf(() => call(place.folder))
  expect(await tree(place.outside)).toEqual(before)
  expect(text).not.toContain(secret)
  expect(code).toMatch(/^(done|[A-Z_]+)$/)
  expect(code).not.toBe("INTERNAL")
  const inside = Object.entries(await tree(place.folder)).filter(([, content]) => content.includes(secret))
  expect(inside).toEqual([])
  return code
}

describe.skipIf(process.platform === "win32")("a run's folder from elsewhere", () => {
  describe.each(calls)("%s", (_, call, used) => {
    it.each(kinds)("does not change files outside: %s", async (kind) => {
      // What a call does not use is tried with two kinds.
      for (const level of levels.filter((one) => used.includes(one) || ["absolute", "pipe"].includes(kind))) {
        const place = await putLink(received, level, kind)
        const code = await judge(place, await tree(place.outside), call)
        if (used.includes(level)) expect.soft(code, level).toBe("UNSAFE_PATH")
        await remove(place)
      }
    })
  })

  it("is resumed through a link to the whole folder", async () => {
    const place = await putLink(received, "unused", "absolute")
    await symlink(place.folder, join(place.root, "link"))
    await using run = await Run.open(join(place.root, "link"), config, { resume: true })
    await run.saveCheckpoint(3, new FakePolicy(), 1)
    expect(await readdir(join(place.folder, "checkpoints"))).toEqual(["iteration-3"])
    await remove(place)
  })

  it("is resumed without writing to a file that has a second name elsewhere", async () => {
    const place = await putLink(received, "unused", "absolute")
    const victim = join(place.outside, "victim.jsonl")
    await link(join(place.folder, "metrics.jsonl"), victim)
    const before = await readFile(victim, "utf8")
    await using run = await Run.open(place.folder, config, { resume: true })
    await run.log({ iteration: 3, metrics: {} })
    expect(await readFile(victim, "utf8")).toBe(before)
    expect((await run.reports()).map(({ iteration }) => iteration)).toEqual([1, 2, 3])
    await remove(place)
  })

  it.each(aside)("with %s without a seal of this machine: nothing is moved or removed", async (name) => {
    const place = await putLink(received, "unused", "absolute")
    await writeFile(join(place.folder, "unused.txt"), "")
    await cp(received, join(place.folder, name), { recursive: true })
    const before = await tree(place.folder)
    for (const mode of [{ resume: true }, { overwrite: true }]) {
      const opening = Run.open(place.folder, config, mode)
      const message = expect.stringMatching(/gigpo recover/)
      await expect(opening).rejects.toMatchObject({ code: "UNFINISHED_WRITE", message })
    }
    expect(await tree(place.folder)).toEqual(before)
    await recover(place.folder)
    expect((await readdir(place.folder)).filter((one) => one.startsWith(".gigpo"))).toEqual([])
    await remove(place)
  })
})
