import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { alfworld } from "../../../src/environment/alfworld/alfworld.ts"
import { Random } from "../../../src/util/random.ts"
import { replayAlfworld } from "../../replay/alfworld.ts"
import { readRecording } from "../../replay/recording.ts"
import type { Difference } from "../../replay/replay.ts"
import { replay } from "../../replay/run.ts"
import { present, reason, traces, useArchive } from "./archive.ts"

interface Recording {
  readonly game: string
  readonly logic: string
  readonly policy: string
  readonly steps: { cmd: string | null; obs: string; adm: string | string[]; won: boolean }[]
}

async function recordings(): Promise<Recording[]> {
  const all: Recording[] = []
  for await (const record of readRecording(traces)) all.push(record as Recording)
  return all
}

describe.skipIf(!present)(`recordings of ALFWorld's own engine${reason}`, () => {
  const data = useArchive()
  const games = () => join(data(), "json_2.1.1")

  it("are replayed with equal text, commands and success", async () => {
    expect(await replay("alfworld", games(), traces)).toEqual({ steps: 8055, differences: 0, first: [] })
  })

  it("are compared in text, both forms of commands, and success", async () => {
    const whole = await recordings()
    const [first] = whole
    const listed = whole.find(({ steps }) => steps.slice(0, 2).every((step) => Array.isArray(step.adm)))!
    const change = (record: Recording, edit: (steps: Recording["steps"]) => void): Recording => {
      const copy = structuredClone(record)
      edit(copy.steps)
      return copy
    }
    const changed = [
      change(first!, (steps) => Object.assign(steps[1]!, { obs: `${steps[1]!.obs} ` })),
      change(first!, (steps) => Object.assign(steps[2]!, { adm: "0000000000000000" })),
      change(listed, (steps) => Object.assign(steps[1]!, { adm: steps[1]!.adm.slice(1) })),
      change(first!, (steps) => Object.assign(steps.at(-1)!, { won: false })),
    ]
    const found: (readonly Difference[])[] = []
    const list = async function* () {
      yield* changed
    }
    for await (const differences of replayAlfworld(games(), list())) if (differences.length > 0) found.push(differences)
    expect(found.map((differences) => differences.map(({ where }) => where.split(": ").at(-1)))).toEqual([
      ["text"],
      ["commands"],
      ["commands"],
      ["won"],
    ])
    expect(found[0]![0]).toMatchObject({
      where: `${first!.game} (file), step 1: ${first!.steps[1]!.cmd}: text`,
      expected: `${first!.steps[1]!.obs} `,
      actual: first!.steps[1]!.obs,
    })
  })

  it("are rejected if a line is not an episode, or its game is missing", async () => {
    const play = async (record: unknown) => {
      const list = async function* () {
        yield record
      }
      for await (const _ of replayAlfworld(games(), list())) throw new Error("it played")
    }
    for (const wrong of [null, {}, { game: "a/game.tw-pddl" }, { steps: [] }])
      await expect(play(wrong)).rejects.toMatchObject({ code: "BAD_DATA", message: /no episode of ALFWorld/ })
    await expect(play({ game: "a/game.tw-pddl", steps: [] })).rejects.toMatchObject({ code: "IO" })
  })

  it("are won with reward 10 by the recorded plans, through the environment", async () => {
    const environment = await alfworld({ data: data(), trainSplit: "valid_train" })
    const plans = (await recordings()).filter(({ policy }) => policy === "plan")
    expect(plans).toHaveLength(56)
    for (const { game, steps } of plans) {
      const context = { signal: new AbortController().signal, random: new Random(1) }
      const episode = await environment.start({ game, taskType: "pick_and_place_simple" }, context)
      expect(episode.first.text).toBe(steps[0]!.obs)
      const rewards: number[] = []
      for (const { cmd, obs, won } of steps.slice(1)) {
        const result = await episode.step(cmd!)
        expect(result.observation.text).toBe(obs)
        expect(result.terminated).toBe(won)
        rewards.push(result.reward)
      }
      expect(rewards).toEqual([...steps.slice(2).map(() => 0), 10])
    }
  })
})
