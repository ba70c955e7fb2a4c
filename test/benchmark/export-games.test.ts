import { existsSync } from "node:fs"
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Benchmark } from "../../src/benchmark/benchmark.ts"
import { exportGames } from "../../src/benchmark/export-games.ts"
import { alfworld, type GameTask } from "../../src/environment/alfworld/alfworld.ts"
import { Random } from "../../src/util/random.ts"
import { householdBenchmark, playedEpisode } from "./households.ts"

let root: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "gigpo-games-"))
})
afterAll(async () => await rm(root, { recursive: true }))

describe("exported households", () => {
  it.each([
    ["medium rooms never trained on", { testSplit: "valid_unseen", size: "medium", wording: "move" }],
    ["small rooms in the older wording", { testSplit: "valid_seen", size: "small", wording: "put" }],
  ] as const)("of %s are the very same games from the folder, step for step", async (name, options) => {
    const benchmark = await householdBenchmark(options, 5)
    const data = await exportGames(benchmark, join(root, name))
    const read = await alfworld({ data, testSplit: options.testSplit })
    const { games } = JSON.parse(await readFile(join(root, name, "gigpo.json"), "utf8"))
    const exported = new Map([...read.tasks("test", new Random(0))].map((task) => [(task as GameTask).game, task]))
    expect(exported.size).toBe(30)
    for (const [index, { key, task }] of benchmark.tasks.entries()) {
      const { taskType } = task
      const game = exported.get(games[key].replace("json_2.1.1/", ""))!
      expect((game as GameTask).taskType).toBe(taskType)
      for (const policy of ["expert", "random"] as const) {
        const here = await playedEpisode(benchmark.environment, task, policy, new Random(index))
        const there = await playedEpisode(read, game, policy, new Random(index))
        expect(there).toEqual(here)
        if (policy === "expert") expect(here.at(-1)).toMatchObject({ reward: 10, terminated: true })
      }
    }
  })

  it("tell what ALFWorld's loader, goals and expert ask for", async () => {
    const benchmark = await householdBenchmark({ testSplit: "valid_unseen" }, 4)
    const data = await exportGames(benchmark, join(root, "told"))
    for (const { task } of benchmark.tasks) {
      const folders = await readdir(join(data, "valid_unseen"))
      const folder = folders.find((name) => name.startsWith(`${task.taskType}-`) && name.endsWith(`-${task.scene}`))
      expect(folder).toBeDefined()
    }
    const folders = await readdir(join(data, "valid_unseen"), { recursive: true })
    for (const path of folders.filter((name) => name.endsWith("traj_data.json"))) {
      const trajectory = JSON.parse(await readFile(join(data, "valid_unseen", path), "utf8"))
      const game = JSON.parse(await readFile(join(data, "valid_unseen", path, "../game.tw-pddl"), "utf8"))
      const { object_target, parent_target, toggle_target, ...others } = trajectory.pddl_params
      expect(others).toEqual({ object_sliced: false, mrecep_target: "" })
      const target = trajectory.task_type === "look_at_obj_in_light" ? toggle_target : parent_target
      expect([parent_target, toggle_target].sort()).toEqual(["", target])
      expect(path.startsWith(`${trajectory.task_type}-${object_target}-None-${target}-`)).toBe(true)
      expect(path).toContain(`/${trajectory.task_id}/`)
      // As ALFWorld's games have it, the grammar says what the annotation does.
      expect(game.grammar).toContain(`Your task is to: ${trajectory.turk_annotations.anns[0].task_desc}.`)
      expect(game).toMatchObject({ solvable: true, walkthrough: expect.arrayContaining([expect.any(String)]) })
    }
  })

  it("are the same bytes again, and say of which benchmark they are", async () => {
    const benchmark = await householdBenchmark({}, 1)
    await exportGames(benchmark, join(root, "once"))
    await exportGames(benchmark, join(root, "again"))
    const [once, again] = await Promise.all(
      ["once", "again"].map((name) => readFile(join(root, name, "gigpo.json"), "utf8")),
    )
    // Which has the sums of all files.
    expect(again).toBe(once)
    const { benchmark: name, digests, games, files } = JSON.parse(once!)
    expect({ name, digests }).toEqual({ name: benchmark.name, digests: benchmark.digests })
    expect(Object.keys(games)).toEqual(benchmark.tasks.map(({ key }) => key))
    expect(files).toHaveLength(12)
  })

  it("are written into an empty folder alone, whole or not at all", async () => {
    const benchmark = await householdBenchmark({}, 1)
    const taken = join(root, "taken")
    await mkdir(taken)
    await writeFile(join(taken, "notes"), "mine")
    await expect(exportGames(benchmark, taken)).rejects.toMatchObject({ code: "FILE_EXISTS" })
    expect(await readdir(taken)).toEqual(["notes"])
    const stop = new AbortController()
    const stopped = exportGames(benchmark, join(root, "stopped"), {
      signal: stop.signal,
      onProgress: (done) => done === 3 && stop.abort(new Error("enough")),
    })
    await expect(stopped).rejects.toThrow("enough")
    expect(existsSync(join(root, "stopped"))).toBe(false)
    expect((await readdir(root)).filter((name) => name.includes(".tmp-"))).toEqual([])
  })

  it("replace those of another benchmark, and no other file next to them", async () => {
    const [six, twelve] = [await householdBenchmark({}, 1), await householdBenchmark({ size: "small" }, 2)]
    const folder = join(root, "replaced")
    await exportGames(twelve, folder)
    await writeFile(join(folder, "notes"), "mine")
    await exportGames(six, folder, { overwrite: true })
    await exportGames(six, join(root, "fresh"))
    const listed = async (path: string) => (await readdir(path, { recursive: true })).sort()
    expect(await listed(folder)).toEqual([...(await listed(join(root, "fresh"))), "notes"].sort())
  })

  it("are rejected where ALFWorld would not find them, and where there are none", async () => {
    const benchmark = await householdBenchmark({}, 1)
    const passedOver = expect.stringMatching(/skips every game whose path contains "Sliced"/)
    await expect(exportGames(benchmark, join(root, "Sliced", "games"))).rejects.toMatchObject({
      ...{ code: "BAD_ARGUMENT", message: passedOver },
    })
    const games = { ...benchmark, tasks: [{ key: "a", task: { game: "valid_seen/a/game.tw-pddl", taskType: "x" } }] }
    const rooms = { ...benchmark, environment: { ...benchmark.environment, name: "sokoban" } }
    for (const other of [games, rooms] as unknown as Benchmark[]) {
      await expect(exportGames(other, join(root, "none"))).rejects.toMatchObject({
        ...{ code: "BAD_ARGUMENT", message: expect.stringMatching(/has no generated households/) },
      })
    }
    expect(existsSync(join(root, "none"))).toBe(false)
  })
})
