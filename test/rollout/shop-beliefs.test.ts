import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { beliefKey } from "../../src/credit/belief-key.ts"
import { beliefStateMemory } from "../../src/environment/memory/belief-state.ts"
import { groupPage, pagePhase } from "../../src/rollout/beliefs/shopping.ts"
import type { Episode } from "../../src/rollout/episode.ts"
import { beliefRewards } from "../../src/rollout/hooks/belief-rewards.ts"
import type { Group, HookContext } from "../../src/rollout/hooks.ts"

interface Told {
  readonly instruction: string
  readonly observations: readonly string[]
  readonly links: readonly (readonly string[])[]
  readonly actions: readonly string[]
  readonly beliefs: readonly object[]
  /** r_state, r_task and r_pred of each belief after each action, as the functions of ReBel's authors give them, [beliefs][steps]. */
  readonly scores: readonly (readonly (readonly [number, number, number])[])[]
  /** Phase of each page, and its phase for step groups, by the same. */
  readonly phases: readonly string[]
  readonly groups: readonly string[]
}
const told: Told = JSON.parse(readFileSync("test/fixtures/shop-beliefs.json", "utf8"))

const seen = told.observations.map((text, at) => ({ text, anchor: text, actions: told.links[at]! }))
const stated = (belief: object) => `<belief>${JSON.stringify(belief)}</belief><think>so</think><action>…</action>`

/** The told episode with the same belief in every step. */
function episodeOf(text: string, action?: string): Episode {
  const steps = told.actions.map((own, at) => ({ observation: seen[at]!, text, action: action ?? own, valid: true }))
  return { steps, outcome: "terminated", return: 10, metrics: { success: 1 }, last: seen.at(-1)! } as unknown as Episode
}

async function scored(...episodes: readonly Episode[]): Promise<readonly Episode[]> {
  const group = { task: { instruction: told.instruction }, index: 0, episodes } as unknown as Group
  const context = { environment: { name: "webshop" } } as HookContext
  return await beliefRewards().score!(group, context)
}

describe("beliefRewards in WebShop", () => {
  it("scores beliefs as the authors' functions do", async () => {
    const episodes = await scored(...told.beliefs.map((belief) => episodeOf(stated(belief))))
    const names = ["belief-state", "belief-task", "belief-prediction"] as const
    for (const [b, { steps }] of episodes.entries())
      for (const [at, { metrics }] of steps.entries())
        for (const [k, name] of names.entries())
          expect(metrics![name], `belief ${b}, step ${at}, ${name}`).toBeCloseTo(told.scores[b]![at]![k]!, 9)
  })

  it("pays the format: links of the page and searches on the start page are admissible", async () => {
    const text = stated(told.beliefs[0]!)
    const [own, search, silent] = await scored(episodeOf(text), episodeOf(text, "search[hat]"), episodeOf("no belief"))
    const formats = (episode: Episode) => episode.steps.map(({ metrics }) => metrics!["belief-format"])
    const isLink = told.actions.map((action, at) => at === 0 || told.links[at]!.includes(action))
    expect(formats(own!)).toEqual(isLink.map((one) => (one ? 0.01 : -0.01)))
    expect(formats(search!)).toEqual(told.actions.map((_, at) => (at === 0 ? 0.01 : -0.01)))
    expect(formats(silent!)).toEqual(told.actions.map(() => -0.05))
  })

  it("knows the phases of pages", () => {
    expect(told.observations.map(pagePhase)).toEqual(told.phases)
    expect(told.observations.map(groupPage)).toEqual(told.groups)
    const key = (at: number) => beliefKey({ text: stated({ task: { target: "x" } }), observation: seen[at]! })
    expect(key(1)).not.toBe(key(2))
    expect(key(2)).toBe(key(3))
  })

  it("are asked for by the memory, with the parts of a shop", () => {
    const text = String(
      beliefStateMemory({ domain: "shop" })
        .start({} as never)
        .render([], seen[0]!),
    )
    for (const part of ["target", "confirmed", "unconfirmed", "searching, browsing"]) expect(text).toContain(part)
    expect(text).not.toContain("receptacle")
  })
})
