import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { type AlfworldOptions, alfworld, type GameTask } from "../../../src/environment/alfworld/alfworld.ts"
import { Game } from "../../../src/environment/alfworld/game.ts"
import { readGameFile } from "../../../src/environment/alfworld/game-file.ts"
import { checkEnvironment } from "../../../src/rollout/check-environment.ts"
import { Random } from "../../../src/util/random.ts"
import { present, reason, useArchive } from "./archive.ts"
import { tinyFile } from "./tiny.ts"

async function listTasks(options: AlfworldOptions, split: "train" | "test", count = 1000, seed = 1) {
  const tasks: GameTask[] = []
  for (const task of (await alfworld(options)).tasks(split, new Random(seed))) {
    if (tasks.push(task as GameTask) === count) break
  }
  return tasks
}

const context = () => ({ signal: new AbortController().signal, random: new Random(1) })

describe("a folder of games", () => {
  const root = mkdtempSync(join(tmpdir(), "gigpo-alfworld-folder-"))
  afterAll(() => rmSync(root, { recursive: true }))

  const { domain, grammar, problem } = tinyFile({
    objects: "me - agent",
    types: "agent",
    rules: { intro: "You are here.\n\nYour task is to: shout." },
    actions: {
      shout: ":parameters (?a - agent) :precondition () :effect (heard ?a)",
      help: ":parameters (?a - agent) :precondition () :effect (checked ?a)",
    },
    goal: "(heard me)",
  })
  const json = (more: object) => JSON.stringify({ pddl_domain: domain, grammar, pddl_problem: problem, ...more })
  const trajectory = (type: string) => JSON.stringify({ plan: 'a "task_type" quoted', task_type: type })

  let folders = 0
  /** A data folder with these games, by path. */
  function write(games: Record<string, { game?: string; trajectory?: string }>): string {
    const data = join(root, String(folders++))
    for (const [path, files] of Object.entries(games)) {
      mkdirSync(join(data, path), { recursive: true })
      if (files.game !== undefined) writeFileSync(join(data, path, "game.tw-pddl"), files.game)
      if (files.trajectory !== undefined) writeFileSync(join(data, path, "traj_data.json"), files.trajectory)
    }
    return data
  }
  const good = { game: json({ solvable: true }), trajectory: trajectory("pick_and_place_simple") }

  it.skipIf(process.platform === "win32").each(["game.tw-pddl", "traj_data.json"])(
    "does not wait for a pipe, and reads no file that is far larger than a game: %s",
    async (name) => {
      const data = write({ "train/a/t": good, "valid_seen/a/t": good })
      const path = join(data, "train/a/t", name)
      truncateSync(path, 17 * 2 ** 20)
      await expect(listTasks({ data }, "train", 1)).rejects.toMatchObject({
        code: "BAD_DATA",
        message: expect.stringContaining(`${name} has 17 MiB; the maximum`),
      })
      rmSync(path)
      execFileSync("mkfifo", [path])
      await expect(listTasks({ data }, "train", 1)).rejects.toMatchObject({ code: "UNSAFE_PATH" })
    },
  )

  it("contains the games that ALFWorld would play, and no others", async () => {
    const data = write({
      "train/b/trial_1": good,
      "train/a/trial_2": { ...good, trajectory: trajectory("look_at_obj_in_light") },
      "train/a/trial_1": good,
      "train/deep/er/still/trial": good,
      "train/no-trajectory/t": { game: good.game },
      "train/no-game/t": { trajectory: good.trajectory },
      "train/unsolvable/t": { ...good, game: json({ solvable: false }) },
      "train/unknown/t": { ...good, game: json({ solvable: null }) },
      "train/silent/t": { ...good, game: json({}) },
      "train/movable/t": good,
      "train/AppleSliced/t": good,
      "train/other-type/t": { ...good, trajectory: trajectory("pick_and_place_with_movable_recep") },
      "valid_seen/c/t": good,
    })
    const tasks = await listTasks({ data }, "train", 4)
    expect(tasks.map(({ game }) => game).sort()).toEqual([
      "train/a/trial_1/game.tw-pddl",
      "train/a/trial_2/game.tw-pddl",
      "train/b/trial_1/game.tw-pddl",
      "train/deep/er/still/trial/game.tw-pddl",
    ])
    expect(tasks.find(({ game }) => game.includes("trial_2"))!.taskType).toBe("look_at_obj_in_light")
    expect(await listTasks({ data }, "test")).toEqual([
      { game: "valid_seen/c/t/game.tw-pddl", taskType: "pick_and_place_simple" },
    ])
    expect(await listTasks({ data, taskTypes: ["look_at_obj_in_light"] }, "train", 2)).toEqual([
      { game: "train/a/trial_2/game.tw-pddl", taskType: "look_at_obj_in_light" },
      { game: "train/a/trial_2/game.tw-pddl", taskType: "look_at_obj_in_light" },
    ])
  })

  it("offers training games epoch by epoch in new orders, test games once in one order", async () => {
    const names = Array.from({ length: 8 }, (_, i) => `g${7 - i}/t`)
    const data = write(
      Object.fromEntries(["train", "valid_seen"].flatMap((s) => names.map((n) => [`${s}/${n}`, good]))),
    )
    const paths = async (...args: ["train" | "test", number?, number?]) =>
      (await listTasks({ data }, ...args)).map(({ game }) => game)
    const train = await paths("train", 16)
    const epochs = [train.slice(0, 8), train.slice(8)]
    for (const epoch of epochs) expect(new Set(epoch).size).toBe(8)
    expect(epochs[0]).not.toEqual(epochs[1])
    expect(await paths("train", 16)).toEqual(train)
    expect(await paths("train", 16, 2)).not.toEqual(train)
    const test = await paths("test")
    const sorted = [...names].sort().map((name) => `valid_seen/${name}/game.tw-pddl`)
    expect(test).toEqual(new Random(0).derive("alfworld test").shuffled(sorted))
    expect(await paths("test", 1000, 2)).toEqual(test)
    expect(test).not.toEqual(sorted)
  })

  it("is not read further after an abort", async () => {
    // The second game could not be read.
    const data = write({ "train/a/t": good, "train/b/t": { ...good, game: "{" }, "valid_seen/c/t": good })
    await expect(alfworld({ data })).rejects.toMatchObject({ code: "BAD_DATA" })
    const controller = new AbortController()
    const opening = alfworld({ data, signal: controller.signal })
    controller.abort(new Error("enough"))
    await expect(opening).rejects.toThrow("enough")
    await expect(alfworld({ data, signal: AbortSignal.abort(new Error("no more")) })).rejects.toThrow("no more")
    await expect(alfworld({ signal: AbortSignal.abort(new Error("no more")) })).rejects.toThrow("no more")
  })

  it("is found if the parent folder of json_2.1.1 is given", async () => {
    const data = write({ "json_2.1.1/train/a/t": good })
    const [task] = await listTasks({ data }, "train", 1)
    expect(task!.game).toBe("train/a/t/game.tw-pddl")
    const environment = await alfworld({ data })
    const episode = await environment.start(task!, context())
    expect(episode.first.text).toBe("You are here.\n\nYour task is to: shout.")
  })

  it("fulfils the environment contract, without expert actions for unknown goals", async () => {
    const data = write({ "train/a/t": good, "valid_seen/b/t": good })
    await checkEnvironment(await alfworld({ data }))
  })

  it("omits `help` from the list, though it is accepted; the reward is 10", async () => {
    const data = write({ "train/a/t": good })
    const environment = await alfworld({ data })
    const [task] = await listTasks({ data }, "train", 1)
    const episode = await environment.start(task!, context())
    expect(episode.first.actions).toEqual(["shout"])
    expect((await episode.step("help")).observation.text).toBe("Done.")
    expect(await episode.step("shout")).toEqual({
      observation: { text: "Done.", anchor: "Done.", actions: ["shout"] },
      reward: 10,
      terminated: true,
      truncated: false,
      metrics: { success: 1, "success/pick_and_place_simple": 1 },
    })
  })

  it("terminates a game won with the last permitted step, instead of truncating it", async () => {
    const environment = await alfworld({ data: write({ "train/a/t": good }), maxSteps: 1 })
    const start = () =>
      environment.start({ game: "train/a/t/game.tw-pddl", taskType: "pick_and_place_simple" }, context())
    expect(await (await start()).step("shout")).toMatchObject({ terminated: true, truncated: false })
    expect(await (await start()).step("help")).toMatchObject({ terminated: false, truncated: true })
  })

  it.each([
    ["no folder of games", {}, /neither a folder train nor valid_seen; give the folder json_2\.1\.1/],
    ["a game that is not JSON", { "train/a/t": { ...good, game: "{" } }, /train\/a\/t\/game\.tw-pddl: .* not JSON/],
    ["a game without its problem", { "train/a/t": { ...good, game: "{}" } }, /lacks the string "pddl_domain"/],
    [
      "no task type",
      { "train/a/t": { ...good, trajectory: "{}" } },
      /train\/a\/t\/traj_data\.json: there is no "task_type"/,
    ],
  ])("is rejected with %s, at opening", async (_, games, message) => {
    await expect(alfworld({ data: write(games) })).rejects.toMatchObject({ code: "BAD_DATA", message })
  })

  it("is rejected if a requested split has no games", async () => {
    const data = write({ "train/a/t": good, "valid_seen/b/t": { ...good, game: json({ solvable: false }) } })
    await expect(listTasks({ data }, "test")).rejects.toMatchObject({
      code: "BAD_DATA",
      message: /valid_seen has no solvable game .* set testSplit to another folder/,
    })
  })

  it("rejects an episode whose game is corrupt or missing, naming the file", async () => {
    const data = write({ "train/a/t": { ...good, game: json({ solvable: true, pddl_problem: "(define" }) } })
    const environment = await alfworld({ data })
    const [task] = await listTasks({ data }, "train", 1)
    await expect(environment.start(task!, context())).rejects.toMatchObject({
      code: "BAD_DATA",
      message: /train\/a\/t\/game\.tw-pddl: pddl_problem ends before all its parentheses are closed/,
    })
    rmSync(join(data, "train"), { recursive: true })
    await expect(environment.start(task!, context())).rejects.toMatchObject({
      code: "BAD_DATA",
      message: /game\.tw-pddl/,
    })
  })

  it("reads a game once for all its episodes", async () => {
    const data = write({ "train/a/t": good })
    const environment = await alfworld({ data })
    const [task] = await listTasks({ data }, "train", 1)
    const episodes = await Promise.all(Array.from({ length: 8 }, () => environment.start(task!, context())))
    rmSync(data, { recursive: true })
    const late = await environment.start({ ...task! }, context())
    expect(new Set([...episodes, late].map(({ first }) => first.text)).size).toBe(1)
    await episodes[0]!.step("shout")
    expect((await episodes[1]!.step("fly")).terminated).toBe(false)
  })
})

describe.skipIf(!present)(`the original games of ALFWorld${reason}`, () => {
  const data = useArchive()
  const counts = {
    pick_and_place_simple: 105,
    look_at_obj_in_light: 50,
    pick_clean_then_place_in_recep: 95,
    pick_heat_then_place_in_recep: 64,
    pick_cool_then_place_in_recep: 74,
    pick_two_obj_and_place: 86,
  }

  it("are listed as by ALFWorld; all 474 start, with their task and admissible actions", async () => {
    const tasks = new Map<string, GameTask>()
    for (const [trainSplit, testSplit, train, test] of [
      ["valid_train", "valid_seen", 200, 140],
      ["valid_train", "valid_unseen", 200, 134],
    ] as const) {
      const options = { data: join(data(), "json_2.1.1"), trainSplit, testSplit }
      const lists = [await listTasks(options, "train", train), await listTasks(options, "test")]
      expect(lists.map((list) => new Set(list.map(({ game }) => game)).size)).toEqual([train, test])
      for (const task of lists.flat()) tasks.set(task.game, task)
    }
    expect(tasks.size).toBe(474)
    const types = [...tasks.values()].map(({ taskType }) => taskType)
    expect(
      Object.fromEntries(Object.keys(counts).map((type) => [type, types.filter((one) => one === type).length])),
    ).toEqual(counts)

    const environment = await alfworld({ data: data(), trainSplit: "valid_train" })
    for (const task of tasks.values()) {
      const { first } = await environment.start(task, context())
      expect(first.text).toMatch(
        /^-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room\. .*\n\nYour task is to: .+\.$/,
      )
      expect(first.actions!.length).toBeGreaterThan(6)
      expect(first.actions).toContain("look")
    }
  })

  it("fulfil the environment contract", async () => {
    await checkEnvironment(await alfworld({ data: data(), trainSplit: "valid_train" }))
  })

  it("of an older domain, without a flag for solvability, are not played", async () => {
    const root = join(data(), "json_2.1.1")
    const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith("tw-pddl"))
    const silent = files.filter((path) => !("solvable" in JSON.parse(readFileSync(join(root, path), "utf8"))))
    expect(silent).toHaveLength(3)
    const played: string[] = []
    for (const testSplit of ["valid_seen", "valid_unseen"]) {
      const options = { data: root, trainSplit: "valid_train", testSplit }
      for (const split of ["train", "test"] as const)
        played.push(...(await listTasks(options, split, 200)).map(({ game }) => game))
    }
    expect(played.filter((path) => silent.includes(path))).toEqual([])
    // TextWorld's engine reads two of them all the same, and rejects the third.
    const open = (path: string) => Game.parse(readGameFile(readFileSync(join(root, path), "utf8"), path)).start()
    const [bad, ...good] = silent.sort((a, b) => Number(b.includes("movable")) - Number(a.includes("movable")))
    expect(() => open(bad!)).toThrow("the predicate receptacleobjecttype is not declared")
    for (const path of good) expect(open(path).admissible()).toContain("look")
  })
})
