import { describe, expect, it } from "vitest"
import type { Environment, PastStep } from "../../../src/environment/environment.ts"
import { type SokobanOptions, type SokobanTask, sokoban } from "../../../src/environment/sokoban/sokoban.ts"
import { checkEnvironment } from "../../../src/rollout/check-environment.ts"
import { Random } from "../../../src/util/random.ts"

const corridor: SokobanTask = { seed: 0, room: "#######\n#P_X_O#\n#######" }

function take(environment: Environment<SokobanTask>, split: "train" | "test", count: number, seed = 1): SokobanTask[] {
  const tasks: SokobanTask[] = []
  for (const task of environment.tasks(split, new Random(seed))) {
    if (tasks.push(task) === count) break
  }
  return tasks
}

function start(environment: Environment<SokobanTask>, task: SokobanTask, signal = new AbortController().signal) {
  return environment.start(task, { signal, random: new Random(1) })
}

describe("sokoban", () => {
  it.each([
    {},
    { boxes: 2, rules: false },
    { size: [8, 7], thinking: "required", heldOut: "seed" },
  ] as SokobanOptions[])("keeps the contract of environments with %j", async (options) => {
    await checkEnvironment(sokoban(options))
  })

  it("rewards each push by its effect on the targets, minus 0.1 per step", async () => {
    const task = { seed: 0, room: "########\n#PX_O_X#\n#______#\n#_____O#\n########" }
    const episode = await start(sokoban(), task)
    const rewards: number[] = []
    const onTarget: (number | undefined)[] = []
    for (const action of ["left", "still", "right", "right", "right"]) {
      const result = await episode.step(action)
      rewards.push(result.reward)
      onTarget.push(result.metrics?.boxesOnTarget)
      expect([result.terminated, result.truncated, result.metrics?.success]).toEqual([false, false, 0])
    }
    expect(rewards).toEqual([-0.1, -0.1, -0.1, 0.9, -1.1])
    expect(onTarget).toEqual([0, 0, 0, 1, 0])
  })

  it("terminates with 10.9 when the last box is on its target, even on the last step", async () => {
    const episode = await start(sokoban({ maxSteps: 3 }), corridor)
    await episode.step("right")
    await episode.step("right")
    const last = await episode.step("right")
    expect(last).toEqual({
      observation: {
        text: "# # # # # # #\n# _ _ _ P √ #\n# # # # # # #",
        anchor: "# # # # # # #\n# _ _ _ P √ #\n# # # # # # #",
        actions: ["up", "down", "left", "right"],
      },
      reward: 10.9,
      terminated: true,
      truncated: false,
      metrics: { success: 1, boxesOnTarget: 1 },
    })
    await expect(episode.step("left")).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: /episode has ended/ })
  })

  it("truncates the episode at maxSteps, including steps without a move", async () => {
    const episode = await start(sokoban({ maxSteps: 3 }), corridor)
    expect(episode.first.text).toBe("# # # # # # #\n# P _ X _ O #\n# # # # # # #")
    expect((await episode.step("still")).truncated).toBe(false)
    expect((await episode.step("up")).truncated).toBe(false)
    expect(await episode.step("still")).toMatchObject({ reward: -0.1, terminated: false, truncated: true })
  })

  it("rejects unknown actions, disposed episodes, aborted signals and broken rooms", async () => {
    const environment = sokoban()
    const episode = await start(environment, corridor)
    await expect(episode.step("jump")).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: /use up, down/ })
    await episode[Symbol.asyncDispose]?.()
    await expect(episode.step("up")).rejects.toMatchObject({ code: "DISPOSED" })
    await expect(start(environment, corridor, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough")
    for (const task of [{ seed: 0, room: "#" }, { seed: 0 }, { room: 3 }, undefined, null, "x"])
      await expect(start(environment, task as SokobanTask)).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
  })

  it.each([
    [{ size: [6] }, "size must be [height, width]"],
    [{ size: [6, 2] }, "size must be an integer from 3 to 50, not [6,2]"],
    [{ size: 6 }, "size must be [height, width]"],
    [{ boxes: 1.5 }, "boxes"],
    [{ searchDepth: 2 }, "searchDepth"],
    [{ maxSteps: 0 }, "maxSteps"],
    [{ maxSteps: "15" }, 'maxSteps must be an integer from 1 to 10000, not "15"'],
    [{ history: -1 }, "history"],
    [{ rules: "yes" }, "rules must be true or false"],
    [{ thinking: "maybe" }, 'thinking must be "optional" or "required" or "off"'],
    [{ heldOut: "room" }, "heldOut"],
    [{ max_steps: 15 }, "max_steps is not an option; did you mean maxSteps?"],
  ])("rejects the options %j", (options, message) => {
    expect(() => sokoban(options as unknown as SokobanOptions)).toThrow(
      expect.objectContaining({ code: "BAD_CONFIG", message: expect.stringContaining(message) }),
    )
  })

  it("uses defaults for undefined options", () => {
    expect(() => sokoban({ maxSteps: undefined } as unknown as SokobanOptions)).not.toThrow()
  })
})

describe("tasks of sokoban", () => {
  it("are determined by the random generator, whatever it generated before", () => {
    const environment = sokoban()
    const used = new Random(1)
    used.uint32()
    const [first] = environment.tasks("train", used)
    expect(first).toEqual(take(environment, "train", 1)[0])
    expect(take(environment, "train", 20, 1)).toEqual(take(environment, "train", 20, 1))
    expect(take(environment, "train", 20, 2)).not.toEqual(take(environment, "train", 20, 1))
  })

  it("are fixed for the test, from seed 65536", () => {
    const seeds = take(sokoban({ heldOut: "seed" }), "test", 4, 1).map((task) => task.seed)
    expect(seeds).toEqual([65536, 65537, 65538, 65539])
    expect(take(sokoban(), "test", 20, 1)).toEqual(take(sokoban(), "test", 20, 2))
    expect(take(sokoban(), "test", 20).every((task) => task.seed >= 65536)).toBe(true)
    expect(take(sokoban(), "train", 200).every((task) => task.seed < 65535)).toBe(true)
  })

  it("have different layouts in the splits, unless only seeds are held out", () => {
    const layout = (task: SokobanTask) => task.room.replace(/[PX]/g, "_").replace(/[S√]/g, "O")
    const shared = (options: SokobanOptions) => {
      const train = new Set(take(sokoban(options), "train", 2000).map(layout))
      return take(sokoban(options), "test", 128).filter((task) => train.has(layout(task))).length
    }
    expect(shared({})).toBe(0)
    expect(shared({ heldOut: "seed" })).toBeGreaterThan(32)
  })

  it("end with an error if the options allow no room", () => {
    expect(() => take(sokoban({ size: [4, 4], boxes: 3 }), "train", 1)).toThrow(
      expect.objectContaining({ code: "BAD_CONFIG", message: expect.stringContaining("decrease boxes") }),
    )
  })
})

describe("parse of sokoban", () => {
  const now = { text: "", anchor: "" }
  it.each([
    ["<think>the box is above</think><action>up</action>", "up", true, true],
    ["<action>Down</action>", "down", true, false],
    ["<action>move left, please</action>", "left", true, false],
    ["<action>right or up</action>", "up", true, false],
    ["the thought began in the prompt</think> <action>still</action>", "still", true, true],
    ["<think>a</think><think>b</think><action>right</action>", "right", true, true],
    ["<action>push</action>", "still", false, false],
    ["<action></action>", "still", false, false],
    ["up", "still", false, false],
    ["<think>up</think>", "still", false, false],
    ["<think>up<action>down</action>", "down", true, false],
    ["<action>up</action><think>so</think>", "up", true, true],
    ["<action>up", "still", false, false],
    ["", "still", false, false],
  ])("reads %j as %s (valid: %j; where thoughts are required: %j)", (completion, action, valid, validWithThought) => {
    expect(sokoban({ thinking: "optional" }).parse(completion, now)).toEqual({ action, valid })
    expect(sokoban({ thinking: "off" }).parse(completion, now)).toEqual({ action, valid })
    expect(sokoban().parse(completion, now)).toEqual({ action, valid: validWithThought })
  })
})

describe("prompt of sokoban", () => {
  const observations = ["#P_X_O#", "#_PX_O#", "#__PXO#"].map((row) => {
    const text = ["#######", row, "#######"].map((line) => [...line].join(" ")).join("\n")
    return { text, anchor: text }
  })
  const history: PastStep[] = observations.map((observation) => ({
    observation,
    completion: "<action>right</action>",
    action: "right",
  }))
  const content = (options: SokobanOptions, steps: number) => {
    const messages = sokoban(options).prompt(corridor, history.slice(0, steps), observations[Math.min(steps, 2)]!)
    expect(messages.map((message) => message.role)).toEqual(["user"])
    return messages[0]!.content
  }

  it("explains the game at the first step", () => {
    expect(content({}, 0)).toMatchInlineSnapshot(`
      "You are playing Sokoban. Push every box onto a target.

      Symbols: # wall, _ floor, O target, X box, √ box on a target, P you, S you on a target.
      Each action moves you one cell up, down, left or right. Walls stop you. Walking into a box pushes it one cell further if the cell behind it is free; otherwise nothing moves. You cannot pull a box or push two at once. The puzzle is solved when every box stands on a target.

      Step 1, now:
      # # # # # # #
      # P _ X _ O #
      # # # # # # #

      First think about the next action inside <think> </think>. Then give one action (up, down, left or right) inside <action> </action>."
    `)
  })

  it("shows the last steps with their numbers", () => {
    expect(content({ history: 2 }, 3).split("\n\n").slice(2)).toMatchInlineSnapshot(`
      [
        "Step 2:
      # # # # # # #
      # _ P X _ O #
      # # # # # # #
      Your action: right",
        "Step 3:
      # # # # # # #
      # _ _ P X O #
      # # # # # # #
      Your action: right",
        "Step 4, now:
      # # # # # # #
      # _ _ P X O #
      # # # # # # #",
        "First think about the next action inside <think> </think>. Then give one action (up, down, left or right) inside <action> </action>.",
      ]
    `)
  })

  it("shows no step with history 0, and all with a long history", () => {
    expect(content({ history: 0 }, 3)).not.toContain("Your action")
    expect(content({ history: 9 }, 3).match(/Your action: right/g)).toHaveLength(3)
  })

  it("requests thinking as configured", () => {
    const request = (thinking: "required" | "off") => content({ thinking }, 0).split("\n\n").at(-1)
    expect(request("required")).toMatchInlineSnapshot(
      `"First think about the next action inside <think> </think>. Then give one action (up, down, left or right) inside <action> </action>."`,
    )
    expect(request("off")).toMatchInlineSnapshot(
      `"Give one action (up, down, left or right) inside <action> </action>."`,
    )
  })

  it("contains only history and grid without rules", () => {
    expect(content({ rules: false, history: 1 }, 2)).toMatchInlineSnapshot(`
      "# # # # # # #
      # _ P X _ O #
      # # # # # # #
      right

      # # # # # # #
      # _ _ P X O #
      # # # # # # #"
    `)
    expect(content({ rules: false }, 0)).toBe(observations[0]!.text)
  })

  it("supports custom functions for history, whole prompt and parsing", () => {
    const memory = (turns: readonly PastStep[]) => turns.map(({ action }) => action).join(", ")
    expect(content({ memory }, 3)).toContain("\n\nright, right, right\n\nStep 4, now:")
    expect(content({ memory, rules: false }, 2)).toBe(`right, right\n\n${observations[2]!.text}`)
    const prompt: SokobanOptions["prompt"] = (task, turns) => [
      { role: "system", content: `${task.seed}: ${turns.length}` },
    ]
    expect(sokoban({ prompt }).prompt(corridor, history, observations[0]!)).toEqual([
      { role: "system", content: `${corridor.seed}: ${history.length}` },
    ])
    const parse: SokobanOptions["parse"] = (completion) => ({
      action: completion.slice(0, 2),
      valid: completion.length > 2,
    })
    expect(sokoban({ parse }).parse("up!", observations[0]!)).toEqual({ action: "up", valid: true })
  })
})

describe("expert of sokoban", () => {
  it("writes thoughts only if required", () => {
    const text = corridor.room.replaceAll(/(?<=.)(?=.)/g, " ")
    const completion = (options: SokobanOptions) =>
      sokoban(options).expert!(corridor).complete({ text, anchor: text }, [])
    expect(completion({ thinking: "optional" })).toBe("<action>right</action>")
    expect(completion({})).toMatch(/^<think>.+<\/think><action>right<\/action>$/)
  })

  it("recovers from wrong moves and gives up if the room is unsolvable", () => {
    const environment = sokoban({ thinking: "optional" })
    const task = { seed: 0, room: "######\n#P___#\n#__X_#\n#__O_#\n######" }
    const expert = environment.expert!(task)
    const advice = (room: string) => {
      const text = room
        .split("\n")
        .map((line) => [...line].join(" "))
        .join("\n")
      return expert.complete({ text, anchor: text }, [])
    }
    expect(advice(task.room)).toBe("<action>right</action>")
    expect(advice("######\n#__P_#\n#__X_#\n#__O_#\n######")).toBe("<action>down</action>")
    expect(advice("######\n#____#\n#P_X_#\n#__O_#\n######")).toMatch(/up|right/)
    expect(advice("######\n#____#\n#___P#\n#_XO_#\n######")).toBe("<action>left</action>")
    expect(advice("######\n#____#\n#__PX#\n#__O_#\n######")).toBeUndefined()
    expect(advice("######\n#____#\n#__P_#\n#__√_#\n######")).toBeUndefined()
  })
})
