import { describe, expect, it } from "vitest"
import type { Trainable } from "../../src/engine/engine.ts"
import { parallelCopies } from "../../src/environment/parallel.ts"
import type { Episode } from "../../src/rollout/episode.ts"
import { expertProgress } from "../../src/rollout/hooks/expert-progress.ts"
import { informationGain } from "../../src/rollout/hooks/information-gain.ts"
import { monteCarlo } from "../../src/rollout/hooks/monte-carlo.ts"
import { oracleCandidates } from "../../src/rollout/hooks/oracle-candidates.ts"
import type { GuideContext, RolloutHooks } from "../../src/rollout/hooks.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { type DoorsTask, doorsEnvironment } from "./doors.ts"
import { FakePolicy } from "./fake-policy.ts"
import { rolloutSetup, takeDoors, useTokenizer } from "./setup.ts"

// Hooks that provide what estimators need besides rewards.

const tokenizer = useTokenizer()
const right = (room: string) => ({ red: "a", green: "b", blue: "c" })[room]!
const answering = doorsEnvironment({
  verify: (_task, now, action) => (action === "c" ? undefined : Number(action === right(now.text.split(" ")[0]!))),
  answer: ({ index, rooms }) => (index === 0 ? undefined : { before: "<", text: rooms[0]! }),
})

/** Log-probability of a token by the tokens before it. */
const logProb = (tokens: Int32Array, at: number) =>
  -((tokens.subarray(0, at + 1).reduce((sum, one) => sum + one, 0) % 97) + 1) / 40
class KnowingPolicy extends FakePolicy implements Pick<Trainable, "logProbs"> {
  rows = 0
  logProbs: Trainable["logProbs"] = async (rows) => {
    this.rows += rows.length
    const found = rows.flatMap(({ tokens, segments }) =>
      segments.flatMap(({ start, length }) => Array.from({ length }, (_, i) => logProb(tokens, start + i))),
    )
    return { logProbs: Float32Array.from(found) } as never
  }
}

const play = async (hooks: RolloutHooks<DoorsTask>, changes: Parameters<typeof rolloutSetup>[1] = {}) => {
  const policy = new KnowingPolicy(tokenizer.get())
  const setup = rolloutSetup(tokenizer.get(), {
    hooks,
    environment: answering,
    tasks: takeDoors(3),
    policy,
    ...changes,
  })
  return { policy, groups: (await rollout(setup)).groups }
}

describe("informationGain", () => {
  it("is the difference of the answer's probability in two consecutive prompts", async () => {
    const { groups } = await play(informationGain() as RolloutHooks<DoorsTask>)
    let gains = 0
    for (const { task, episodes } of groups)
      for (const { steps } of episodes)
        for (const [turn, { metrics }] of steps.entries()) {
          const probabilities = [steps[turn]!, steps[turn + 1] ?? steps[turn]!].map(({ prompt }) => {
            const answer = [...tokenizer.get().encode(task.rooms[0]!)]
            const all = Int32Array.from([...prompt, ...tokenizer.get().encode("<"), ...answer])
            let sum = 0
            for (let at = all.length - answer.length; at < all.length; at++) sum += Math.fround(logProb(all, at))
            return Math.exp(sum / answer.length)
          })
          const gain = metrics?.["information-gain"]
          const isKnown = task.index !== 0 && turn + 1 < steps.length
          if (isKnown) expect(gain).toBeCloseTo(probabilities[1]! - probabilities[0]!, 12)
          else expect(gain).toBeUndefined()
          if (isKnown && gain !== 0) gains++
          expect(metrics).toHaveProperty("success") // of the environment, still there
        }
    expect(gains).toBeGreaterThan(5)
  })

  it("leaves out turns without room for the answer, and reads a lead in place of the environment's", async () => {
    const longest = Math.max(
      ...(await play({})).groups.flatMap(({ episodes }) =>
        episodes.flatMap(({ steps }) => steps.map(({ prompt }) => prompt.length)),
      ),
    )
    const policy = Object.assign(new KnowingPolicy(tokenizer.get()), { maxPositions: longest + 4 })
    const { groups } = await play(informationGain({ answerPrefix: "12345" }) as RolloutHooks<DoorsTask>, { policy })
    expect(groups.flatMap(({ episodes }) => episodes)).not.toHaveLength(0)
    expect(policy.rows).toBeLessThan(groups.flatMap(({ episodes }) => episodes.flatMap(({ steps }) => steps)).length)
  })

  it("rejects an environment without answers, and a policy without log-probabilities", async () => {
    await expect(play(informationGain() as never, { environment: doorsEnvironment() })).rejects.toThrow(
      /informationGain needs the method answer of the environment, which the environment doors does not have/,
    )
    await expect(play(informationGain() as never, { policy: new FakePolicy(tokenizer.get()) })).rejects.toThrow(
      /policy with log-probabilities/,
    )
  })
})

describe("monteCarlo", () => {
  it("is the mean return from each state of a group, each played once", async () => {
    const replays: string[][] = []
    const returns = (replay: readonly string[]) =>
      [1, 2, 6].map((one) => one * (1 + replay.length) + replay.join("").length / 8)
    const playing: GuideContext["rollout"] = async ({ replay = [] }) => {
      replays.push([...replay])
      const steps = [{ observation: { text: "", anchor: replay.join("") } }] as unknown as Episode["steps"]
      const failed = { steps: [], outcome: "failed", return: 1000, metrics: {} } as unknown as Episode
      return [
        ...returns(replay).map((one) => ({ ...failed, steps, outcome: "terminated", return: one }) as Episode),
        failed,
      ]
    }
    const episode = (actions: readonly string[], outcome = "terminated") => {
      const steps = actions.map((action, at) => ({
        ...{ action, observation: { text: "", anchor: actions.slice(0, at).join("") }, metrics: { success: 0 } },
      }))
      return { steps, outcome, return: 0, metrics: {} } as unknown as Episode
    }
    const episodes = [episode(["a", "b", "a"]), episode(["a", "c"]), episode(["x"], "failed")]
    const told = await monteCarlo().guide!({ task: 0, index: 0, episodes }, { rollout: playing } as GuideContext)
    expect(replays).toEqual([[], ["a"], ["a", "b"]])
    for (const [at, { steps }] of told!.entries())
      for (const [turn, { metrics }] of steps.entries()) {
        const replay = episodes[at]!.steps.slice(0, turn).map(({ action }) => action)
        const [one, two, three] = returns(replay) as [number, number, number]
        const value = at < 2 ? { "monte-carlo-value": (one + two + three) / 3 } : {}
        expect(metrics).toEqual({ success: 0, ...value })
      }
  })

  it("continues real episodes from their states, and learns from none of them", async () => {
    const { groups } = await play(monteCarlo() as RolloutHooks<DoorsTask>)
    const values = groups.flatMap(({ episodes }) =>
      episodes.flatMap(({ steps }) => steps.map(({ metrics }) => metrics!["monte-carlo-value"]!)),
    )
    expect(groups.map(({ episodes }) => episodes.length)).toEqual([4, 4, 4])
    for (const value of values) expect([0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3]).toContain(value)
    expect(new Set(values).size).toBeGreaterThan(2)
    const first = groups[0]!.episodes.map(({ steps }) => steps[0]!.metrics!["monte-carlo-value"])
    expect(new Set(first).size).toBe(1) // one state, one value
  })

  it("rejects actions that lead to another state", async () => {
    const hooks = { ...monteCarlo(), start: ({ rooms }: DoorsTask) => ({ replay: [right(rooms[0]!)] }) }
    await expect(play(hooks as never)).rejects.toThrow(/came to another state.*no curriculum that replays actions/s)
  })
})

describe("oracleCandidates", () => {
  it("scores all completions by the environment, and acts on one of the best", async () => {
    const policy = new KnowingPolicy(tokenizer.get(), ["a", "b", "c", "?"])
    const { groups } = await play(oracleCandidates({ count: 3, invalidScore: -2 }) as RolloutHooks<DoorsTask>, {
      policy,
    })
    const kinds = new Set<number>()
    for (const { steps } of groups.flatMap(({ episodes }) => episodes))
      for (const step of steps) {
        const all = [step as Required<typeof step>, ...step.candidates!]
        expect(all).toHaveLength(3)
        const best = right(step.observation.text.split(" ")[0]!)
        for (const { action, valid, score } of all) {
          expect(score).toBe(!valid ? -2 : action === "c" ? 0 : Number(action === best))
          kinds.add(score)
        }
        expect(step.score).toBe(Math.max(...all.map(({ score }) => score)))
      }
    expect([...kinds].sort()).toEqual([-2, 0, 1])
  })

  it("rejects an environment without an oracle, and invalid options", async () => {
    await expect(play(oracleCandidates() as never, { environment: doorsEnvironment() })).rejects.toThrow(
      /oracleCandidates needs the method verify.*sokoban, number-line, blackjack and sql/,
    )
    expect(() => oracleCandidates({ count: 1 })).toThrow(/count must be/)
  })
})

describe("expertProgress", () => {
  /** Number of the expert's first actions that a list contains in their order: the longest of its beginnings that is a subsequence. */
  const followed = (wanted: readonly string[], actions: readonly string[]) => {
    for (let length = wanted.length; length > 0; length--) {
      let from = 0
      const found = wanted.slice(0, length).every((action) => {
        const at = actions.indexOf(action, from)
        from = at + 1
        return at >= 0
      })
      if (found) return length
    }
    return 0
  }
  const wander = {
    step: async (action: string, episode: { step(action: string): Promise<object> }) => ({
      ...(await episode.step(action)),
      terminated: false,
    }),
  }

  it.each([1, 3])("adds what failed episodes have of the expert's actions, with %s copies", async (copies) => {
    const inner = doorsEnvironment({ ...(wander as object), verify: answering.verify! })
    const environment = copies === 1 ? inner : parallelCopies(inner, { copies })
    const completions = copies === 1 ? ["a", "b", "c"] : ["aab", "bca", "cbb", "acc"]
    /** The replies of the policy have a letter for each copy, those of the expert have tags. */
    const parse: typeof inner.parse = (completion, now) =>
      completion.length > copies
        ? environment.parse(completion, now)
        : { action: [...completion].join("\n"), valid: true }
    const policy = Object.assign(new KnowingPolicy(tokenizer.get(), completions), { maxPositions: 2000 })
    const changes = { environment: { ...environment, parse } as typeof inner, policy, maxSteps: 4, maxPositions: 2000 }
    const [plain, told] = [
      await play({}, changes),
      await play(expertProgress() as never, {
        ...changes,
        policy: Object.assign(new KnowingPolicy(tokenizer.get(), completions), { maxPositions: 2000 }),
      }),
    ]
    const progresses = new Set<number>()
    for (const [at, { task, episodes }] of told.groups.entries())
      for (const [member, episode] of episodes.entries()) {
        const before = plain.groups[at]!.episodes[member]!
        const wanted = task.rooms.map(right)
        const lines = Array.from({ length: copies }, (_, e) => before.steps.map(({ action }) => action.split("\n")[e]!))
        const failed = before.metrics.success !== 1
        const progress = failed ? Math.max(...lines.map((one) => followed(wanted, one))) / wanted.length : 0
        progresses.add(progress)
        expect(episode.return).toBeCloseTo(before.return + progress, 12)
        expect(episode.steps.slice(0, -1)).toEqual(before.steps.slice(0, -1))
      }
    expect(progresses.size).toBeGreaterThan(2)
  })

  it("rejects an environment without an expert", async () => {
    const { expert: _, ...without } = doorsEnvironment()
    await expect(play(expertProgress() as never, { environment: without })).rejects.toThrow(
      /expertProgress needs the method expert/,
    )
  })
})
