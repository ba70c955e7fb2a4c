import { describe, expect, it } from "vitest"
import { metaReasoningMemory } from "../../src/environment/memory/meta-reasoning.ts"
import type { Episode } from "../../src/rollout/episode.ts"
import { type ReasoningRewardsOptions, reasoningRewards } from "../../src/rollout/hooks/reasoning-rewards.ts"
import type { Group, HookContext } from "../../src/rollout/hooks.ts"

interface Said {
  readonly text: string
  readonly action?: string
  readonly valid?: boolean
  readonly actions?: readonly string[]
}

function episodeOf(steps: readonly Said[], more: object = {}): Episode {
  const told = steps.map(({ text, action = "go", valid = true, actions }) => ({
    ...{ text: `${text}<action>${action}</action>`, action, valid, metrics: { kept: 1 } },
    observation: { text: "", anchor: "", ...(actions && { actions }) },
  }))
  return { steps: told, outcome: "terminated", return: 1, metrics: {}, ...more } as unknown as Episode
}

/** Tag and reward of each step. */
async function scored(steps: readonly Said[], more: object = {}, options: ReasoningRewardsOptions = {}) {
  const group = { task: 0, index: 0, episodes: [episodeOf(steps, more)] } as unknown as Group
  const [episode] = (await reasoningRewards(options).score!(group, {} as HookContext)) as readonly Episode[]
  return episode!.steps.map(({ metrics }) => [metrics!["reasoning-tag"], metrics!["reasoning-reward"]])
}

const plan = "<planning>1. look 2. take</planning>"
const explore = "<explore>perhaps the drawer</explore>"
const reflect = "<reflection>it was closed</reflection>"
const monitor = "<monitor>go on</monitor>"

describe("reasoningRewards", () => {
  it("pays plans of episodes with a return above 0", async () => {
    expect(await scored([{ text: plan }])).toEqual([[1, 1]])
    expect(await scored([{ text: plan }], { return: 0 })).toEqual([[1, 0]])
    expect(await scored([{ text: plan }], {}, { planning: 0.5 })).toEqual([[1, 0.5]])
  })

  it("pays explorations of actions that no earlier completion that counts had", async () => {
    const steps = [
      { text: monitor, action: "a" },
      { text: explore, action: "a" },
      { text: explore, action: "b" },
      { text: "nothing", action: "c" },
      { text: explore, action: "c" },
      { text: explore, action: "b" },
    ]
    expect(await scored(steps, { return: 0 })).toEqual([
      [0, 0],
      [2, 0],
      [2, 1],
      [0, 0],
      [2, 1],
      [2, 0],
    ])
  })

  it("pays reflections after an action that failed, which act differently", async () => {
    const open = { actions: ["open"] }
    const steps = [
      { text: reflect, action: "open", ...open },
      { text: reflect, action: "close", ...open },
      { text: reflect, action: "close", ...open },
      { text: reflect, action: "open", ...open },
      { text: "nothing", action: "open", ...open },
      { text: reflect, action: "close", ...open },
    ]
    expect(await scored(steps)).toEqual([
      [3, 1],
      [3, 0],
      [3, 0],
      [3, 1],
      [0, 0],
      [3, 1],
    ])
  })

  it.each([
    ["without a tag", { text: "<think>so</think>" }],
    ["with two", { text: plan + explore }],
    ["with an empty one", { text: "<planning> </planning>" }],
    ["with one after the action", { text: `<action>go</action>${plan}` }],
    ["with an action that cannot be read", { text: plan, valid: false }],
    ["with monitoring", { text: monitor }],
  ])("pays nothing for a completion %s", async (_, step) => {
    expect(await scored([step])).toEqual([[0, 0]])
  })

  it("leaves failed episodes alone", async () => {
    expect(await scored([{ text: plan }], { outcome: "failed" })).toEqual([[undefined, undefined]])
  })
})

describe("metaReasoning", () => {
  it("shows the last plan and steps, and asks for one kind of reasoning", async () => {
    const observation = { text: "A drawer.", anchor: "" }
    const context = {} as never
    const history = [
      { observation, action: "open drawer", completion: `${plan}<action>open drawer</action>` },
      { observation, action: "take pen", completion: `${monitor}<action>take pen</action>` },
    ]
    const text = String(
      await metaReasoningMemory({ history: 1 })
        .start(context)
        .render(history as never, observation as never),
    )
    expect(text).toContain("Your plan, to which you keep:\n1. look 2. take")
    expect(text).toContain("[Observation 2: 'A drawer.', Action 2: 'take pen']")
    expect(text).not.toContain("Action 1:")
    for (const tag of ["planning", "explore", "reflection", "monitor"]) expect(text).toContain(`<${tag}> </${tag}>`)
    const first = String(
      await metaReasoningMemory()
        .start(context)
        .render([], observation as never),
    )
    expect(first).not.toContain("Your plan")
  })
})
