import { describe, expect, it } from "vitest"
import { toBatch } from "../../src/credit/batch.ts"
import { gigpo } from "../../src/credit/gigpo.ts"
import { stepSequence } from "../../src/engine/sequence.ts"
import { branchAt } from "../../src/rollout/hooks/branch-at.ts"
import type { RolloutHooks } from "../../src/rollout/hooks.ts"
import { type Rollout, rollout, type StepLocation } from "../../src/rollout/rollout.ts"
import { rolloutMetrics } from "../../src/training/metrics.ts"
import { toSequences } from "../../src/training/rows.ts"
import { collectSteps } from "../../src/training/steps.ts"
import { atOnce } from "../../src/util/pace.ts"
import { Random } from "../../src/util/random.ts"
import { byRow } from "../engine/by-row.ts"
import { characters, TablePolicy } from "../training/table-policy.ts"
import { type DoorsTask, doorsEnvironment } from "./doors.ts"
import { type DoorsSetup, rolloutSetup, takeDoors, useTokenizer } from "./setup.ts"

const tokenizer = useTokenizer()
/** Wrong doors are no end, so that there is time to branch. */
const patient = doorsEnvironment({
  step: async (action, episode) => ({ ...(await episode.step(action)), terminated: false }),
})
const play = async (hooks: RolloutHooks<DoorsTask>, changes: Partial<DoorsSetup> = {}) =>
  await rollout(rolloutSetup(tokenizer.get(), { hooks, environment: patient, maxSteps: 5, ...changes }))
const often: RolloutHooks<DoorsTask> = {
  onTurn: (_turn, { random }) => (random.below(3) === 0 ? { kind: "branch", branchingFactor: 3 } : { kind: "accept" }),
}
const branches = ({ episodes }: Rollout["groups"][0]) => episodes.filter(({ branch }) => branch)

describe("branches", () => {
  it.each([1, 7, 64])("are the same with concurrency %i as with 16", async (concurrency) => {
    const expected = await play(often)
    expect(expected.groups.some((group) => branches(group).some(({ branch }) => branch!.of >= 4))).toBe(true)
    expect(await play(often, { concurrency })).toEqual(expected)
  })

  it("follow the members in order of parent, step and branch, share the parent's steps, and continue independently", async () => {
    let different = 0
    for (const group of (await play(often)).groups) {
      const { episodes } = group
      expect(episodes.slice(0, 4).every(({ branch }) => branch === undefined)).toBe(true)
      const places = episodes.slice(4).map(({ branch }) => branch!)
      expect(places).toEqual([...places].sort((a, b) => a.of - b.of || a.step - b.step))
      for (const [at, episode] of episodes.entries()) {
        if (!episode.branch) continue
        const { of, step } = episode.branch
        expect(of).toBeLessThan(at)
        const parent = episodes[of]!
        for (let i = 0; i < step; i++) expect(episode.steps[i]).toBe(parent.steps[i])
        expect(episode.steps[step]!.observation).toEqual(parent.steps[step]!.observation)
        expect(episode.steps[step]!.prompt).toEqual(parent.steps[step]!.prompt)
        expect(episode.steps).toHaveLength(5)
        expect(episode.return).toBe(episode.steps.reduce((sum, { reward }) => sum + reward, 0))
        if (episode.steps[step]!.text !== parent.steps[step]!.text) different++
      }
    }
    expect(different).toBeGreaterThan(0)
  })

  it.each([0, 1, 4, 9])(
    "are at most %i per member, including nested ones, and do not change the members",
    async (forks) => {
      const plain = await play({})
      const { groups } = await play(often, { maxBranches: forks })
      for (const [at, { episodes }] of groups.entries()) {
        expect(episodes.slice(0, 4)).toEqual(plain.groups[at]!.episodes)
        const rootOf = (place: number): number => {
          const { branch } = episodes[place]!
          return branch ? rootOf(branch.of) : place
        }
        const counts = [0, 0, 0, 0]
        for (const [place, { branch }] of episodes.entries()) if (branch) counts[rootOf(place)]!++
        expect(Math.max(...counts)).toBeLessThanOrEqual(forks)
      }
      if (forks === 9) expect(groups.some((group) => branches(group).length > 16)).toBe(true)
    },
  )

  it("sample with separate keys, the first completions of a fork concurrently", async () => {
    const setup = rolloutSetup(tokenizer.get(), { concurrency: 1, groupSize: 1, tasks: takeDoors(1), maxBranches: 7 })
    const hooks = branchAt({ step: 0, branchingFactor: 8 }) as RolloutHooks<DoorsTask>
    const { groups } = await rollout({ ...setup, environment: patient, maxSteps: 2, hooks })
    expect(groups[0]!.episodes).toHaveLength(8)
    expect(setup.policy.keys.size).toBe(16)
    expect(setup.policy.sampled).toBe(16)
    expect(setup.policy.most).toBeGreaterThanOrEqual(7)
  })

  it("have the policy's log-probabilities of their completions", async () => {
    const policy = new TablePolicy()
    const random = new Random(3)
    policy.logits = policy.logits.map(() => 2 * random.uniform())
    const { groups } = await rollout<DoorsTask>({
      ...rolloutSetup(tokenizer.get(), { environment: patient, maxSteps: 4, hooks: often }),
      ...{ policy, tokenizer: characters, maxPositions: 400 },
    })
    const steps = groups.flatMap((group) => branches(group)).flatMap((episode) => episode.steps)
    expect(steps.length).toBeGreaterThan(20)
    const rows = steps.map(({ prompt, completion, logProbs }) => stepSequence(prompt, completion, { logProbs }))
    for (const [at, { logProbs }] of byRow(rows, await policy.logProbs(rows)).entries())
      for (const [t, value] of logProbs.entries()) expect(steps[at]!.logProbs[t]).toBeCloseTo(value, 5)
  })

  it("repeat earlier replays and hints, with the same step limit", async () => {
    const start: RolloutHooks<DoorsTask>["start"] = () => ({ replay: ["a", "b"], maxSteps: 3, hint: "Go on." })
    const told: StepLocation[] = []
    const onStep = (_: unknown, place: StepLocation) => told.push(place)
    const { groups } = await play({ start, ...branchAt({ step: 1, branchingFactor: 2 }) } as typeof often, { onStep })
    for (const { episodes } of groups) {
      expect(episodes).toHaveLength(8)
      for (const { steps } of episodes) expect(steps).toHaveLength(3)
      for (const { branch, steps } of episodes.slice(4)) {
        expect(branch!.step).toBe(1)
        expect(tokenizer.get().decode(steps[1]!.prompt)).toContain("Go on.")
      }
    }
    const own = told.filter(({ branch }) => branch === 1).map(({ task, member, step }) => [task, member, step])
    expect(own.sort()).toEqual(
      Array.from({ length: 32 }, (_, at) => [Math.floor(at / 8), Math.floor(at / 2) % 4, 1 + (at % 2)]),
    )
  })

  it("fail with a reason if the environment is not reproducible", async () => {
    let started = 0
    const environment = doorsEnvironment({
      async start(task, context) {
        const episode = await patient.start(task, context)
        const mark = ++started > 4 ? "!" : ""
        return {
          first: episode.first,
          async step(action) {
            const result = await episode.step(action)
            return { ...result, observation: { ...result.observation, text: result.observation.text + mark } }
          },
        }
      },
    })
    const changes = { environment, tasks: takeDoors(1), concurrency: 4, maxSteps: 3 }
    const { groups } = await play(branchAt({ step: 1, branchingFactor: 2 }) as typeof often, changes)
    const { episodes } = groups[0]!
    expect(episodes.map(({ outcome }) => outcome).slice(0, 4)).toEqual(Array(4).fill("truncated"))
    for (const { outcome, error } of episodes.slice(4)) {
      expect(outcome).toBe("failed")
      expect(error).toMatchObject({
        code: "BAD_ENVIRONMENT",
        message: expect.stringMatching(
          /^doors: a branch repeated the actions of its parent, but after 1 actions the observation differed/,
        ),
      })
    }
  })

  it("are discarded with a failed attempt, and retried if they fail themselves", async () => {
    let started = 0
    const environment = doorsEnvironment({
      async start(task, context) {
        const episode = await patient.start(task, context)
        const number = ++started
        let steps = 0
        const step = async (action: string) => {
          if ([1, 3].includes(number) && ++steps === 2) throw new Error("broke")
          return await episode.step(action)
        }
        return { first: episode.first, step }
      },
    })
    const changes = { environment, tasks: takeDoors(1), groupSize: 1, concurrency: 1, maxSteps: 3, maxRetries: 1 }
    const { groups } = await play(branchAt({ step: 0, branchingFactor: 2 }) as typeof often, changes)
    expect(groups[0]!.episodes.map(({ outcome, attempt }) => [outcome, attempt])).toEqual([
      ["truncated", 1],
      ["truncated", 1],
    ])
    expect(started).toBe(4)
  })

  it("count like other episodes in metrics, rows and credit", async () => {
    const { groups } = await play(often)
    const members = groups.map(({ episodes }) => episodes)
    const steps = collectSteps(members)
    const context = { progress: { iteration: 0, iterations: 1 }, random: new Random(0) }
    const credit = await gigpo().estimate(toBatch(steps), context)
    expect(credit.advantages).toHaveLength(members.flat().length * 5)
    expect(toSequences(steps, credit)).toHaveLength(steps.length)
    expect(atOnce(rolloutMetrics(groups, credit))).toMatchObject({
      "episode/count": members.flat().length,
      "episode/branches": members.flat().length - 16,
    })
  })
})
