import { describe, expect, it } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import { lookFirst } from "../../src/environment/look-first.ts"
import { recentMemory } from "../../src/environment/memory/recent.ts"
import { parallelCopies } from "../../src/environment/parallel.ts"
import { planFirst } from "../../src/environment/plan-first.ts"
import { checkEnvironment } from "../../src/rollout/check-environment.ts"
import { startEpisode } from "../../src/rollout/environment-episode.ts"
import { Random } from "../../src/util/random.ts"
import { type DoorsTask, doorsEnvironment } from "../rollout/doors.ts"

const doors = doorsEnvironment()
const [task] = [...doorsEnvironment({ count: 1 }).tasks("train", new Random(1))]
const right = (room: DoorsTask["rooms"][number]) => ({ red: "a", green: "b", blue: "c" })[room]
const start = async (environment: Environment<DoorsTask>) =>
  await environment.start(task!, { signal: new AbortController().signal, random: new Random(2) })
const asked = (
  environment: Environment<DoorsTask>,
  ...rest: [Parameters<typeof doors.prompt>[1], { text: string; anchor: string }]
) => environment.prompt(task!, ...rest).at(-1)!.content

describe("environment wrappers", () => {
  it.each([
    ["parallel", parallelCopies(doors, { copies: 3 })],
    ["planFirst", planFirst(doors)],
    ["lookFirst", lookFirst(doors, { steps: 2 })],
  ])("%s keeps the contract", async (_, environment) => {
    await checkEnvironment(environment)
  })

  it.each([
    ["parallel", (inner: typeof doors) => parallelCopies(inner, { copies: 2 })],
    ["planFirst", (inner: typeof doors) => planFirst(inner)],
    ["lookFirst", (inner: typeof doors) => lookFirst(inner, { steps: 2 })],
  ])("%s shows what the memory of its environment tells", async (_, wrap) => {
    const environment = wrap(doorsEnvironment({ memory: recentMemory({ history: "all" }) }))
    const context = { environment, task: task!, random: new Random(2), environmentTimeout: 30 }
    await using episode = await startEpisode(context)
    const past = [{ observation: episode.first, completion: "r", action: "wait" }]
    const { content } = (await episode.prompt(past, episode.first)).at(-1)!
    expect(content).toContain(`[Observation 1: '${episode.first.text}', Action 1: 'wait']\n\n`)
  })

  it("parallel drives copies that end independently", async () => {
    const environment = parallelCopies(doors, { copies: 2, reward: "mean", episodeEnd: "last-copy" })
    const episode = await start(environment)
    const [one, two, three] = task!.rooms.map(right)
    const { action, valid } = environment.parse(`<env1>${one}</env1> and <env2>nothing</env2>`, episode.first)
    expect([action, valid]).toEqual([`${one}\nwait`, false])
    const first = await episode.step(action)
    expect(first).toMatchObject({ reward: 0.5, terminated: false, metrics: { success: 0, rooms: 0.5 } })
    const turn = { observation: episode.first, completion: `<env1>${one}</env1>`, action }
    const shown = asked(environment, [turn], first.observation)
    expect(shown).toMatch(/# Environment 1\n/)
    expect(shown).not.toMatch(/# Environment 2|<env2>/)
    expect(environment.parse(`<env1>${two}</env1>`, first.observation)).toEqual({ action: `${two}\n`, valid: true })
    await episode.step(`${two}\n`)
    expect(await episode.step(`${three}\n`)).toMatchObject({ reward: 0.5, terminated: true, metrics: { success: 1 } })
  })

  it("parallel pays the largest reward of the copies that acted, and ends with the first success", async () => {
    const environment = parallelCopies(doors, { copies: 3 })
    const episode = await start(environment)
    const [one, two, three] = task!.rooms.map(right)
    const open = (...actions: readonly (string | undefined)[]) => episode.step(actions.map((a) => a ?? "").join("\n"))
    const both = await open(one, undefined, one)
    expect(both).toMatchObject({ reward: 1, terminated: false })
    // The second copy was idle: it is still in its first room, and opens the same door next.
    const copies = ({ copies }: object & { readonly copies?: readonly { readonly text: string }[] }) => copies!
    expect(copies(both.observation)[1]).toEqual(copies(episode.first)[1])
    expect(await open(undefined, one, undefined)).toMatchObject({ reward: 1, terminated: false })
    expect(await open(undefined, "wait", undefined)).toMatchObject({ reward: 0, terminated: false }) // the end of this copy
    expect(await open()).toMatchObject({ reward: 0, terminated: false })
    await open(two)
    const end = await open(three)
    expect(end).toMatchObject({ reward: 1, terminated: true, truncated: false, metrics: { success: 1 } })
  })

  it("parallel truncates an episode at its limit of steps, also where all copies are idle", async () => {
    const episode = await start(parallelCopies(doors, { copies: 2, maxSteps: 3 }))
    for (const _ of [1, 2]) expect(await episode.step("\n")).toMatchObject({ terminated: false, truncated: false })
    expect(await episode.step("\n")).toMatchObject({ terminated: false, truncated: true })
  })

  it("parallel without the metric success ends with a copy that terminates with a reward", async () => {
    const silent = doorsEnvironment({
      step: async (action, episode) => ({ ...(await episode.step(action)), metrics: {} }),
    })
    const [one, two, three] = task!.rooms.map(right)
    for (const [episodeEnd, over] of [
      ["first-success", true],
      ["last-copy", false],
    ] as const) {
      const episode = await start(parallelCopies(silent, { copies: 2, episodeEnd }))
      for (const action of [one, two]) expect(await episode.step(`${action}\n`)).toMatchObject({ terminated: false })
      expect(await episode.step(`${three}\n`)).toMatchObject({ reward: 1, terminated: over })
    }
  })

  it("planFirst adds the plan to every later prompt", async () => {
    const environment = planFirst(doors, { instruction: "Plan!", heading: "Planned:" })
    const episode = await start(environment)
    expect(asked(environment, [], episode.first)).toMatch(/\n\nPlan!$/)
    expect(environment.parse(" first this ", episode.first)).toEqual({ action: "first this", valid: true })
    const { observation, reward } = await episode.step("first this")
    expect([observation.text, reward]).toEqual([episode.first.text, 0])
    expect(observation.anchor).not.toBe(episode.first.anchor)
    const turn = { observation: episode.first, completion: "first this", action: "first this" }
    expect(asked(environment, [turn], observation)).toMatch(/\n\nPlanned:\nfirst this$/)
    expect(await episode.step(right(task!.rooms[0]!))).toMatchObject({ reward: 1 })
  })

  it("lookFirst restarts after exploration, which has no reward", async () => {
    const environment = lookFirst(doors, { steps: 2, instruction: "Look.", heading: "Seen:" })
    const episode = await start(environment)
    expect(asked(environment, [], episode.first)).toMatch(/\n\nLook\.$/)
    const action = right(task!.rooms[0]!)
    const one = await episode.step(action)
    expect(one).toMatchObject({ reward: 0, terminated: false })
    const two = await episode.step("wait") // ends the copy
    expect(two).toMatchObject({ reward: 0, terminated: false, observation: { text: episode.first.text } })
    const turns = [episode.first, one.observation].map((observation) => ({ observation, completion: "r", action }))
    expect(asked(environment, turns, two.observation)).toBe(
      `${episode.first.text}\n\nSeen:\n${episode.first.text}\n> ${action}\n${one.observation.text}\n> wait\n${one.observation.text}`,
    )
    expect(await episode.step(action)).toMatchObject({ reward: 1 })
  })
})
