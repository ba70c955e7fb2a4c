import { describe, expect, it } from "vitest"
import { type AlfworldOptions, type AlfworldTask, alfworld } from "../../../src/environment/alfworld/alfworld.ts"
import type { PastStep } from "../../../src/environment/environment.ts"
import { checkEnvironment } from "../../../src/rollout/check-environment.ts"
import { Random } from "../../../src/util/random.ts"

const context = (signal = new AbortController().signal) => ({ signal, random: new Random(1) })

async function open(options: AlfworldOptions = {}) {
  const environment = await alfworld(options)
  for (const task of environment.tasks("train", new Random(1))) return { environment, task }
  throw new Error("no task")
}

describe("alfworld", () => {
  it.each([
    {},
    { size: "small", rules: false, thinking: "off" },
    { testSplit: "valid_unseen", wording: "put", expert: "explore", thinking: "optional" },
  ] as AlfworldOptions[])("keeps the contract of environments with %j", async (options) => {
    await checkEnvironment(await alfworld(options))
  })

  it("is won by its expert, with reward 10 at the end and 0 before", async () => {
    const { environment } = await open()
    let tasks = 0
    for (const task of environment.tasks("test", new Random(1))) {
      if (++tasks > 12) break
      const episode = await environment.start(task, context())
      const expert = environment.expert!(task)
      const history: PastStep[] = []
      let now = episode.first
      for (let step = 1; ; step++) {
        const completion = expert.complete(now, history)!
        const { action, valid } = environment.parse(completion, now)
        expect(valid).toBe(true)
        expect(now.actions).toContain(action)
        const result = await episode.step(action)
        const success = result.terminated ? 1 : 0
        expect(result.reward).toBe(10 * success)
        expect(result.metrics).toEqual({ success, [`success/${task.taskType}`]: success })
        history.push({ observation: now, completion, action })
        now = result.observation
        expect(step).toBeLessThan(50)
        if (result.terminated) break
      }
    }
  })

  it("uses the configured split for tests, and trains on neither", async () => {
    const scenes = async (split: "train" | "test", testSplit: string) => {
      const tasks: AlfworldTask[] = []
      const environment = await alfworld({ testSplit })
      for (const task of environment.tasks(split, new Random(1))) if (tasks.push(task) === 50) break
      return new Set(tasks.map((task) => ("scene" in task ? task.scene : -1)))
    }
    const [train, seen, unseen] = [
      await scenes("train", "valid_unseen"),
      await scenes("test", "valid_seen"),
      await scenes("test", "valid_unseen"),
    ]
    for (const scene of unseen) expect([train.has(scene), seen.has(scene)]).toEqual([false, false])
    expect([...seen].some((scene) => train.has(scene))).toBe(true)
  })

  it("truncates the episode at maxSteps; idle commands count as steps", async () => {
    const { environment, task } = await open({ maxSteps: 3 })
    const episode = await environment.start(task, context())
    await episode.step("look")
    const nothing = await episode.step("fly to the moon")
    expect(nothing).toMatchObject({ reward: 0, terminated: false, truncated: false })
    expect(nothing.observation).toMatchObject({ text: "Nothing happens.", anchor: "Nothing happens." })
    expect(await episode.step("look")).toMatchObject({ reward: 0, terminated: false, truncated: true })
    await expect(episode.step("look")).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: /episode has ended/ })
  })

  it("can use the facts as anchor state: a failed command keeps them, and a way back restores them", async () => {
    const [page, state] = [await open(), await open({ anchor: "state" })]
    const anchors = async ({ environment, task }: typeof page, ...actions: string[]) => {
      const episode = await environment.start(task, context())
      const seen = [episode.first]
      for (const action of actions) seen.push((await episode.step(action)).observation)
      return seen
    }
    const [first] = await anchors(state)
    const [there, elsewhere] = first!.actions!.filter((action) => action.startsWith("go to"))
    const walk = [there!, "no such command", elsewhere!, there!]
    const [plain, facts] = [await anchors(page, ...walk), await anchors(state, ...walk)]
    expect(plain.map(({ text }) => text)).toEqual(facts.map(({ text }) => text))
    expect(plain.map(({ anchor }) => anchor)).toEqual(plain.map(({ text }) => text))
    const [, at, failed, moved, back] = facts.map(({ anchor }) => anchor)
    expect(facts[2]!.text).toBe("Nothing happens.")
    expect(failed).toBe(at)
    expect([moved === at, back === at]).toEqual([false, true])
  })

  it("rejects disposed episodes, aborted signals and games without their folder", async () => {
    const { environment, task } = await open()
    const episode = await environment.start(task, context())
    await episode[Symbol.asyncDispose]?.()
    await expect(episode.step("look")).rejects.toMatchObject({ code: "DISPOSED" })
    await expect(environment.start(task, context(AbortSignal.abort(new Error("enough"))))).rejects.toThrow("enough")
    const file: AlfworldTask = { game: "train/a/game.tw-pddl", taskType: "pick_and_place_simple" }
    await expect(environment.start(file, context())).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: /train\/a\/game\.tw-pddl is a game file; give its folder as data/,
    })
  })

  it("rejects invalid tasks", async () => {
    const { environment, task } = await open()
    for (const wrong of [
      undefined,
      null,
      "x",
      3,
      {},
      { seed: 1, scene: 1 },
      { ...task, taskType: "slice" },
      { ...task, seed: 1n },
      { taskType: "pick_and_place_simple" },
    ]) {
      await expect(environment.start(wrong as AlfworldTask, context())).rejects.toMatchObject({
        code: "BAD_ARGUMENT",
        message: /a task must be \{ game, taskType \} or \{ seed, scene, taskType \}/,
      })
    }
  })

  it("stops at an abort while the game is being read", async () => {
    const { environment, task } = await open()
    const controller = new AbortController()
    const pending = environment.start(task, context(controller.signal))
    controller.abort(new Error("enough"))
    await expect(pending).rejects.toThrow("enough")
  })

  it.each([
    [{ data: "" }, "data must be a non-empty string"],
    [{ data: "/nowhere", size: "small" }, "size is for generated households; omit it if data is given"],
    [{ trainSplit: "train" }, "trainSplit is a folder in data"],
    [{ data: "/nowhere", testSplit: "train" }, 'trainSplit and testSplit are both "train"'],
    [{ data: "/nowhere", trainSplit: "./valid_seen/" }, 'trainSplit and testSplit are both "valid_seen"'],
    [{ signal: true }, "signal must be an AbortSignal, not true"],
    [{ testSplit: "test" }, 'testSplit must be "valid_seen" or "valid_unseen" without data, not "test"'],
    [{ taskTypes: [] }, "taskTypes must list one or more of pick_and_place_simple"],
    [{ taskTypes: ["slice"] }, "taskTypes must list"],
    [{ maxSteps: 0 }, "maxSteps must be an integer from 1 to 10000, not 0"],
    [{ history: -1 }, "history must be"],
    [{ admissible: "yes" }, "admissible must be true or false"],
    [{ expert: "oracle" }, "expert must be"],
    [{ max_steps: 50 }, "max_steps is not an option; did you mean maxSteps?"],
  ])("rejects the options %j", async (options, message) => {
    await expect(alfworld(options as AlfworldOptions)).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: expect.stringContaining(`alfworld: ${message}`),
    })
  })

  it("parses completions like verl-agent, whatever they contain", async () => {
    const { environment } = await open()
    const parse = (completion: string) => environment.parse(completion, { text: "", anchor: "" })
    expect(parse("<think>So.</think><action> Go to Desk 1 </action>")).toEqual({ action: "go to desk 1", valid: true })
    expect(parse("<action>fly</action>")).toEqual({ action: "fly", valid: false })
    expect(parse(`${"x".repeat(40)}Open the big fridge with care.`)).toEqual({
      action: "open the big fridge with care.",
      valid: false,
    })
    const lenient = await alfworld({ thinking: "off" })
    expect(lenient.parse("<action>fly</action>", { text: "", anchor: "" })).toEqual({ action: "fly", valid: true })
  })
})

describe("the prompt of alfworld", () => {
  const intro =
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in a room. You see a shelf 1.\n\nYour task is to: put a mug on the shelf."
  const texts = [intro, "You see a mug 1.", "You pick up the mug 1.", "Nothing happens."]
  const turns: PastStep[] = ["go to table 1", "take mug 1", "fly"].map((action, i) => ({
    observation: { text: texts[i]!, anchor: texts[i]! },
    completion: `<action>${action}</action>`,
    action,
  }))
  async function content(options: AlfworldOptions, steps: number): Promise<string> {
    const { environment, task } = await open(options)
    const now = { text: texts[steps]!, anchor: texts[steps]!, actions: ["go to shelf 1", "look"] }
    const [message, ...others] = environment.prompt(task, turns.slice(0, steps), now)
    expect([message!.role, others]).toEqual(["user", []])
    return message!.content
  }

  it("contains at first the observation, the admissible actions and the format", async () => {
    expect(await content({}, 0)).toMatchInlineSnapshot(`
      "You are in a household and act in it by short text commands, one at a time.

      Step 1. You see:
      -= Welcome to TextWorld, ALFRED! =-

      You are in a room. You see a shelf 1.

      Your task is to: put a mug on the shelf.

      Commands that do something here:
      ['go to shelf 1'
       'look']

      First think about the next action inside <think> </think>. Then give one of these commands inside <action> </action>."
    `)
  })

  it("contains later the task, the last steps with their numbers, and the current number", async () => {
    expect(await content({}, 3)).toMatchInlineSnapshot(`
      "You are in a household and act in it by short text commands, one at a time.

      Your task: put a mug on the shelf.

      Steps taken so far: 3. The last of them:
      [Observation 2: 'You see a mug 1.', Action 2: 'take mug 1']
      [Observation 3: 'You pick up the mug 1.', Action 3: 'fly']

      Step 4. You see:
      Nothing happens.

      Commands that do something here:
      ['go to shelf 1'
       'look']

      First think about the next action inside <think> </think>. Then give one of these commands inside <action> </action>."
    `)
  })

  it("can omit the history and the list", async () => {
    const text = await content({ history: 0, admissible: false }, 3)
    expect(text).not.toContain("You pick up")
    expect(text).not.toContain("go to shelf 1")
    expect(text).toContain("Your task: put a mug on the shelf.")
    expect(text).toContain("Steps taken so far: 3.\n")
  })

  it("is minimal without rules", async () => {
    expect(await content({ rules: false }, 0)).toMatchInlineSnapshot(`
      "put a mug on the shelf.
      You are in a room. You see a shelf 1.
      go to shelf 1, look"
    `)
    expect(await content({ rules: false }, 3)).toMatchInlineSnapshot(`
      "put a mug on the shelf.
      You see a mug 1.
      > take mug 1
      You pick up the mug 1.
      > fly
      Nothing happens.
      go to shelf 1, look"
    `)
    expect(await content({ rules: false, admissible: false, history: 0 }, 3)).toMatchInlineSnapshot(`
      "put a mug on the shelf.
      Nothing happens."
    `)
  })

  it("supports custom functions for the history, the whole prompt, and parsing", async () => {
    expect(await content({ memory: (past) => `${past.length} steps ago` }, 2)).toContain(
      "The last of them:\n2 steps ago",
    )
    expect(await content({ memory: (past) => `${past.length} ago`, rules: false }, 2)).toContain("\n2 ago\n")
    expect(await content({ prompt: () => [{ role: "user", content: "mine" }] }, 2)).toBe("mine")
    const environment = await alfworld({ parse: () => ({ action: "look", valid: true }) })
    expect(environment.parse("", { text: "", anchor: "" }).action).toBe("look")
  })
})
