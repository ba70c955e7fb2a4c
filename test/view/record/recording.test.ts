import { execFileSync } from "node:child_process"
import { mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { temporaryOf } from "../../../src/files/seal.ts"
import { collectSteps } from "../../../src/training/steps.ts"
import type { GigpoError } from "../../../src/util/errors.ts"
import { Random } from "../../../src/util/random.ts"
import { episodesPath, recordedIterations } from "../../../src/view/record/folder.ts"
import { readEpisodes, readGroup, readRecordedIterations } from "../../../src/view/record/read.ts"
import { recordEpisodes } from "../../../src/view/record/recorder.ts"
import { all } from "../../training/tiny.ts"
import { bytes, plainGroups, record } from "./groups.ts"

let run: string
beforeEach(async () => {
  run = await mkdtemp(join(tmpdir(), "gigpo-record-"))
})
afterEach(() => rm(run, { recursive: true, force: true }))

const iterations = (count: number, groups = 1) =>
  Array.from({ length: count }, (_, at) => [at + 1, plainGroups(groups, `word ${at + 1}`)] as const)

describe("which episodes are recorded", () => {
  it("those of every so many iterations", async () => {
    await record(run, iterations(7), { every: 3 })
    expect(await recordedIterations(run)).toEqual([3, 6])
    await record(run, iterations(7), { every: 0 })
    expect(await recordedIterations(run)).toEqual([]) // another run began
    expect(await all(readEpisodes(run))).toEqual([])
  })

  it("those of the first tasks", async () => {
    await record(run, iterations(2, 5), { groups: 2 })
    const read = await all(readEpisodes(run))
    expect(read.map(({ iteration, group }) => [iteration, group])).toEqual([
      ...[
        [1, 0],
        [1, 1],
      ],
      ...[
        [2, 0],
        [2, 1],
      ],
    ])
    expect((await readRecordedIterations(run)).map(({ group }) => group)).toEqual(Array(2).fill([0, 0, 1, 1]))
  })

  it("those of the newest iterations", async () => {
    await record(run, iterations(5), { keep: 2 })
    expect(await readdir(join(run, "episodes"))).toEqual(["iteration-4.episodes", "iteration-5.episodes"])
  })

  it("those of where the run went back to, and files of others", async () => {
    await record(run, iterations(12))
    const folder = join(run, "episodes")
    const foreign = ["mine.txt", "iteration-012.episodes", "iteration-9.episodes.tmp-mine", "iteration-x.episodes"]
    foreign.push("iteration-3.episodes.tmp-0123456789abcdef01234567") // named as ours are, and of another user
    for (const name of foreign) await writeFile(join(folder, name), "mine")
    await writeFile(await temporaryOf(episodesPath(run, 3)), "half")
    await record(run, [[9, plainGroups(1, "anew")]], { from: 8 })
    expect(await recordedIterations(run)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect((await readdir(folder)).filter((name) => !/^iteration-\d\.episodes$/.test(name))).toEqual(foreign.toSorted())
    const actions = (await readGroup(run, 9, 0))!.episodes.map(({ steps }) => steps[0]!.action)
    expect(actions).toEqual(["anew", "anew"])
  })

  it("none without a folder", async () => {
    const observer = recordEpisodes({ tokenizer: bytes })
    const start = async () => await observer.start!({ iteration: 0, iterations: 1 })
    await expect(start()).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: expect.stringMatching(/directory/) })
    const { groups, credit } = plainGroups(1)
    expect(observer.episodes!(1, groups, credit, [])).toBeUndefined()
    await observer.end!({ iteration: 1 })
  })

  it("in a folder of one's own", async () => {
    const own = join(run, "elsewhere")
    await record(run, iterations(1), { directory: own })
    expect([await recordedIterations(run), await recordedIterations(own)]).toEqual([[], [1]])
  })
})

it.each([
  [{ every: -1 }, /every/],
  [{ groups: 0 }, /groups/],
  [{ keep: 1.5 }, /keep/],
  [{ directory: "" }, /directory/],
  [{ evry: 1 }, /did you mean every/],
  [{ tokenizer: {} }, /tokenizer/],
])("rejects %j", (wrong, message) => {
  const make = () => recordEpisodes({ tokenizer: bytes, ...(wrong as object) })
  expect(make).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) }))
})

it("leaves iterations out, with one warning, where more wait than may be held", async () => {
  const warnings: string[] = []
  const observer = recordEpisodes({ tokenizer: bytes, onWarning: (message) => warnings.push(message) })
  await observer.start!({ iteration: 0, iterations: 9, directory: run })
  const { groups, credit } = plainGroups(1)
  // One step whose prompt is nearly all that may wait; its tokens are one piece of memory.
  const [first, ...others] = groups[0]!.episodes
  const prompt = new Int32Array(3 * 1024 * 1024)
  const steps = first!.steps.map((step, at) => (at === 0 ? { ...step, prompt } : step))
  const known = collectSteps(groups.map(({ episodes }) => episodes))
  const large = [{ ...groups[0]!, episodes: [{ ...first!, steps }, ...others] }]
  for (const iteration of [1, 2, 3]) observer.episodes!(iteration, large, credit, known) // none is written before all are reported
  for (const iteration of [4, 5]) observer.episodes!(iteration, groups, credit, known)
  await observer.end!({ iteration: 5 })
  expect(await recordedIterations(run)).toEqual([1, 4, 5])
  expect(warnings).toEqual([expect.stringMatching(/^The episodes of iteration 2 are not recorded: .*recording\.every/)])
})

describe("a disk that fails", () => {
  it("ends recording with one warning, and leaves what was whole", async () => {
    await record(run, iterations(1))
    const folder = join(run, "episodes")
    const blocked = join(folder, "iteration-2.episodes")
    await mkdir(join(blocked, "in the way"), { recursive: true })
    const warnings = await record(run, iterations(4).slice(1), { from: 2 })
    expect(warnings).toEqual([
      expect.stringMatching(/^No more episodes are recorded\. Could not .* The run continues\.$/),
    ])
    expect(await readdir(folder)).toEqual(["iteration-1.episodes", "iteration-2.episodes"])
    await rm(blocked, { recursive: true })
    expect(await all(readEpisodes(run))).toHaveLength(1)
    // Another run begins with hope.
    expect(await record(run, iterations(2), { from: 1 })).toEqual([])
  })

  const tiny = smallDisk()
  it.skipIf(tiny === undefined)("is full: the half file goes", async () => {
    try {
      const { groups, credit } = plainGroups(1)
      const [{ episodes }] = groups as [(typeof groups)[number]]
      const random = new Random(1) // what no compressor makes less of
      const prompt = Int32Array.from({ length: 200_000 }, () => random.below(256))
      const steps = episodes[0]!.steps.map((step) => ({ ...step, prompt }))
      const large = [{ ...groups[0]!, episodes: [{ ...episodes[0]!, steps }, episodes[1]!] }]
      const all = [1, 2, 3, 4].map(
        (iteration) => [iteration, iteration === 3 ? { groups: large, credit } : plainGroups(1)] as const,
      )
      const warnings = await record(tiny!, all)
      expect(warnings).toEqual([expect.stringMatching(/^No more episodes are recorded\. .*the disk is full/)])
      expect(await readdir(join(tiny!, "episodes"))).toEqual(["iteration-1.episodes", "iteration-2.episodes"])
      expect(await readRecordedIterations(tiny!)).toHaveLength(2)
    } finally {
      execFileSync("umount", [tiny!])
      await rm(tiny!, { recursive: true })
    }
  })
})

/** A file system of 64 KiB, where this process may mount one. */
function smallDisk(): string | undefined {
  const folder = execFileSync("mktemp", ["-d"], { encoding: "utf8" }).trim()
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], { stdio: "ignore" })
    return folder
  } catch {
    execFileSync("rmdir", [folder])
    return undefined
  }
}

describe("a file that is not whole", () => {
  const fault = (message: RegExp) => ({ code: "RUN_CORRUPT", message: expect.stringMatching(message) })
  let path: string
  beforeEach(async () => {
    await record(run, iterations(2, 3))
    path = episodesPath(run, 1)
  })

  it("is rejected by its name wherever it was cut, and the others are read", async () => {
    const whole = await readFile(path)
    for (let length = 0; length < whole.length; length += 1 + Math.floor(length / 20)) {
      await truncate(path, length)
      await expect(readRecordedIterations(run)).rejects.toMatchObject(
        fault(/iteration-1\.episodes cannot be read .*Remove it/),
      )
      await writeFile(path, whole)
    }
    await truncate(path, whole.length - 1)
    await expect(all(readEpisodes(run))).rejects.toMatchObject(fault(/iteration-1\.episodes/))
    expect(await all(readEpisodes(run, { from: 2 }))).toHaveLength(3)
    expect(await readRecordedIterations(run, { from: 2 })).toHaveLength(1)
  })

  it("is left out, and told of, where somebody wants to hear of it", async () => {
    for (const length of [0, (await readFile(path)).length - 1]) {
      await truncate(path, length)
      const told: GigpoError[] = []
      const onUnreadable = (error: GigpoError) => told.push(error)
      expect((await readRecordedIterations(run, { onUnreadable })).map(({ iteration }) => iteration)).toEqual([2])
      expect((await all(readEpisodes(run, { onUnreadable }))).map(({ iteration }) => iteration)).toEqual([2, 2, 2])
      expect(told).toEqual([0, 1].map(() => expect.objectContaining(fault(/iteration-1\.episodes cannot be read/))))
    }
  })

  it("is rejected wherever a bit of it is another", async () => {
    const [whole, good] = [await readFile(path), await all(readEpisodes(run, { to: 1 }))]
    for (let at = 0; at < whole.length; at += 7) {
      const changed = Buffer.from(whole)
      changed[at]! ^= 1 << (at % 8)
      await writeFile(path, changed)
      const read = all(readEpisodes(run, { to: 1 }))
      await expect(read, `byte ${at}`).rejects.toMatchObject(
        fault(/iteration-1\.episodes (cannot be read|was written by another)/),
      )
    }
    await writeFile(path, whole)
    expect(await all(readEpisodes(run, { to: 1 }))).toEqual(good)
  })

  it("is read by another version where one wrote it", async () => {
    const whole = await readFile(path)
    whole.write("GIGPOEP2")
    await writeFile(path, whole)
    await expect(readGroup(run, 1, 0)).rejects.toMatchObject(fault(/another version of gigpo/))
  })
})

it("rejects to read where there is no run", async () => {
  const nowhere = join(run, "nowhere")
  await expect(readRecordedIterations(nowhere)).rejects.toMatchObject({
    code: "IO",
    message: expect.stringMatching(/no run/),
  })
  expect(await readRecordedIterations(run)).toEqual([])
})
