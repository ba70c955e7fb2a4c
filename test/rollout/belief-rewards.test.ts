import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { beliefKey } from "../../src/credit/belief-key.ts"
import { alfworld } from "../../src/environment/alfworld/alfworld.ts"
import { beliefStateMemory } from "../../src/environment/memory/belief-state.ts"
import { readBelief } from "../../src/rollout/beliefs/belief.ts"
import { HouseholdFacts } from "../../src/rollout/beliefs/household-facts.ts"
import { groupPhase } from "../../src/rollout/beliefs/scores.ts"
import type { Episode } from "../../src/rollout/episode.ts"
import { beliefRewards } from "../../src/rollout/hooks/belief-rewards.ts"
import type { Group, HookContext } from "../../src/rollout/hooks.ts"
import { takeTasks } from "../../src/rollout/tasks.ts"
import { Random } from "../../src/util/random.ts"

interface Told {
  readonly observations: readonly string[]
  readonly commands: readonly (readonly string[])[]
  readonly beliefs: readonly object[]
  /** r_state, r_task and r_pred of each belief after each action, as the functions of ReBel's authors give them, [beliefs][steps]. */
  readonly scores: readonly (readonly (readonly [number, number, number])[])[]
  /** Phases of the commands for step groups, by the same. */
  readonly phases: readonly string[]
}
const told: Told = JSON.parse(readFileSync("test/fixtures/beliefs.json", "utf8"))

/** An episode through the told observations with the same text in every step. */
function episodeOf(text: string, more: object = {}): Episode {
  const seen = told.observations.map((text, at) => ({ text, anchor: `${at}`, actions: told.commands[at]! }))
  const steps = seen
    .slice(0, -1)
    .map((observation) => ({ observation, text, action: "look", valid: true, metrics: { kept: 1 } }))
  return { steps, outcome: "truncated", return: 0, metrics: {}, last: seen.at(-1)!, ...more } as unknown as Episode
}

const scored = async (...episodes: readonly Episode[]) =>
  (await beliefRewards().score!({ task: 0, index: 0, episodes } as Group, {} as HookContext)) as readonly Episode[]
const stated = (belief: object) => `<belief>${JSON.stringify(belief)}</belief><think>so</think><action>look</action>`

describe("beliefRewards", () => {
  it("scores beliefs as the authors' functions do", async () => {
    const episodes = await scored(...told.beliefs.map((belief) => episodeOf(stated(belief))))
    for (const [b, { steps }] of episodes.entries())
      for (const [at, { metrics }] of steps.entries()) {
        const names = ["belief-state", "belief-task", "belief-prediction"] as const
        for (const [k, name] of names.entries())
          expect(metrics![name], `belief ${b}, step ${at}, ${name}`).toBeCloseTo(told.scores[b]![at]![k]!, 9)
        expect(metrics!.kept).toBe(1)
      }
  })

  it("expects the phase done after a success only, and pays the format", async () => {
    const done = stated({ task: { phase: "done" } })
    const [won, failed, silent, invalid] = await scored(
      episodeOf(done, { metrics: { success: 1 } }),
      episodeOf(done, { outcome: "failed" }),
      episodeOf("<belief>no JSON</belief>"),
      { ...episodeOf(done), steps: episodeOf(done).steps.map((step) => ({ ...step, valid: false })) },
    )
    expect(won!.steps.map(({ metrics }) => metrics!["belief-task"])).toEqual([0, 0, 0, 0, 0, 0, 0, 1])
    expect(failed!.steps[0]!.metrics).toEqual({ kept: 1 })
    const lost = { "belief-state": 0, "belief-task": 0, "belief-prediction": 0, "belief-format": -0.05 }
    expect(silent!.steps[3]!.metrics).toEqual({ kept: 1, ...lost })
    expect(invalid!.steps[3]!.metrics!["belief-format"]).toBe(-0.05)
    // The action "look" is admissible in the first and the last state only.
    expect(won!.steps.slice(0, 2).map(({ metrics }) => metrics!["belief-format"])).toEqual([0.01, -0.01])
  })

  it("reads what generated households show", async () => {
    const environment = await alfworld()
    const done = new Set<string>()
    for (const task of takeTasks(environment, "train", new Random(4), 8)) {
      const episode = await environment.start(task, { signal: new AbortController().signal, random: new Random(1) })
      const facts = new HouseholdFacts()
      const expert = environment.expert!(task)
      const history: { observation: typeof episode.first; completion: string; action: string }[] = []
      let now = episode.first
      facts.read(now.text)
      expect(facts.unvisited.size).toBeGreaterThan(3)
      for (let over = false; !over; ) {
        const completion = expert.complete(now, history)!
        const { action } = environment.parse(completion, now)
        const result = await episode.step(action)
        history.push({ observation: now, completion, action })
        now = result.observation
        facts.read(now.text)
        over = result.terminated || result.truncated
        const [verb] = action.split(" ")
        const [, taken] = /^take (.*) from /.exec(action) ?? []
        if (taken) expect(facts.inventory).toBe(taken)
        const [, put, place] = /^(?:put|move) (.*) (?:to|in|on|in\/on) (.*)$/.exec(action) ?? []
        if (put) expect([facts.inventory, facts.places.get(put)]).toEqual(["", `in/on ${place}`])
        const [, changed] = /^(?:heat|cool|clean) (.*) with /.exec(action) ?? []
        if (changed) expect(facts.states.get(changed)).toBe({ heat: "hot", cool: "cold", clean: "clean" }[verb!])
        done.add(verb!)
      }
      expect(facts.visited.size).toBeGreaterThan(0)
    }
    for (const verb of ["go", "take", "open"]) expect(done).toContain(verb)
    expect([...done].some((verb) => /put|move/.test(verb))).toBe(true)
    expect([...done].some((verb) => /heat|cool|clean/.test(verb))).toBe(true)
  })
})

describe("beliefs", () => {
  it("have a key with the phase of the admissible commands, as the authors' code finds it", () => {
    expect(told.commands.map(groupPhase)).toEqual(told.phases)
    const text = stated(told.beliefs[2]!)
    const [actions] = told.commands
    expect(beliefKey({ text, observation: { text: "", anchor: "", actions: actions! } })).toBe(
      '["find","mug 1",true,true]',
    )
    expect(beliefKey({ text })).toBe('["place","mug 1",true,true]')
    expect(beliefKey({ text: "nothing" })).toBe("unreadable")
  })

  it.each(["<belief>[]</belief>", "<belief>7</belief>", "<belief>{</belief>", "no belief"])(
    "are unreadable in %s",
    (text) => expect(readBelief(text)).toBeUndefined(),
  )

  it("are read with single quotes, and parts of another type as empty", () => {
    const text = `<BELIEF>{'state': {'objects': ['a'], 'states': null, 'visited': 'desk 1'}, 'task': 3}</BELIEF>`
    const household = { objects: {}, states: {}, visited: [], unvisited: [] }
    const shop = { wishes: {}, confirmed: {}, open: 0 }
    expect(readBelief(text)).toEqual({ ...household, ...shop, phase: "", target: "", prediction: "" })
  })

  it("are the only history of the memory belief-state", async () => {
    const observation = { text: "a room", anchor: "r" }
    const turns = ["<belief>{ one }</belief>", "no belief"].map((completion) => ({
      observation,
      completion,
      action: "go",
    }))
    const told = beliefStateMemory().start({} as never)
    const first = await told.render([], observation)
    const later = await told.render(turns, observation)
    expect(first).not.toContain("previous")
    expect(later).toMatch(/^Your previous belief:\n\{ one \}\n\nFirst write your belief/)
    expect(later).not.toContain("no belief")
  })
})
