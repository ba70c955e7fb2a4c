import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { candidateScores, candidateSequences } from "../../src/credit/candidates.ts"
import type { Estimator } from "../../src/credit/estimator.ts"
import { gigpo } from "../../src/credit/gigpo.ts"
import { normalizer } from "../../src/credit/normalizer.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { lookFirst } from "../../src/environment/look-first.ts"
import { parallelCopies } from "../../src/environment/parallel.ts"
import { planFirst } from "../../src/environment/plan-first.ts"
import { branchAt } from "../../src/rollout/hooks/branch-at.ts"
import { arpoBranches, entropyBranching } from "../../src/rollout/hooks/entropy-branching.ts"
import { t2po } from "../../src/rollout/hooks/t2po.ts"
import { t2poCut, t2poResamples, t2poScore } from "../../src/rollout/hooks/t2po-score.ts"
import { thinkWhenUnsure } from "../../src/rollout/hooks/think-when-unsure.ts"
import type { HookContext, RolloutHooks, SamplingTurn } from "../../src/rollout/hooks.ts"
import { type Rollout, rollout } from "../../src/rollout/rollout.ts"
import { takeTasks } from "../../src/rollout/tasks.ts"
import type { IterationReport } from "../../src/runs/report.ts"
import { Run } from "../../src/runs/run.ts"
import { train } from "../../src/training/train.ts"
import { Random } from "../../src/util/random.ts"
import { characters } from "../training/table-policy.ts"
import { tableSetup } from "../training/table-setup.ts"
import { openDoors, timeless } from "../training/tiny.ts"
import { TellingPolicy } from "./telling-policy.ts"

const logits = new TellingPolicy().logits.map((_, at) => 3 * (((at * 104_729) % 997) / 997) ** 3)

/** A policy whose replies are more and less sure. */
function varied(): TellingPolicy {
  const policy = new TellingPolicy()
  policy.logits = logits.slice()
  return policy
}

const patient = openDoors({
  step: async (action, episode) => ({ ...(await episode.step(action)), terminated: false }),
})
const thoughts = { promptOpensThinking: true, maxThinkingTokens: 3, closeTag: "!" }
const oracle: RolloutHooks = {
  candidates: ({ observation }) => ({
    count: 3,
    score: ({ action }) => Number({ red: "a", green: "b", blue: "c" }[observation.text.split(" ")[0]!] === action),
  }),
}
const stateGroups: Estimator = {
  name: "state-groups",
  estimate(batch) {
    const { scores, steps, offsets } = candidateScores(batch)
    const all = normalizer()(scores, steps)
    const extraSequences = candidateSequences(batch, (at) => all.subarray(offsets[at]! + 1, offsets[at + 1]))
    return {
      advantages: Float64Array.from({ length: batch.length }, (_, at) => all[offsets[at]!]!),
      extraSequences,
    }
  },
}

/** Learns from every reply, whatever it earned. */
const byLetters: Estimator = {
  name: "by-letters",
  estimate: (batch) => ({
    advantages: Float64Array.from(batch.steps!, ({ text }) => (text.charCodeAt(0) % 2 === 0 ? 1 : -1)),
  }),
}

interface Case {
  readonly hooks?: RolloutHooks
  readonly environment?: Environment
  readonly estimator?: Estimator
  /** Whether the hook showed in what was played. */
  readonly shows: (played: Rollout) => boolean
}

const same = (one: Float64Array, other: Float64Array) => Buffer.compare(bytes(one), bytes(other)) === 0
const bytes = (values: Float64Array) => new Uint8Array(values.buffer)
const stepsOf = ({ groups }: Rollout) =>
  groups.flatMap(({ episodes }) => episodes).flatMap(({ steps }) => steps.map((step, at) => ({ ...step, at })))
const branched = ({ groups }: Rollout) => groups.some(({ episodes }) => episodes.some(({ branch }) => branch))

const cases: Readonly<Record<string, Case>> = {
  "t2po, its thoughts cut": {
    hooks: t2po(thoughts),
    estimator: byLetters,
    shows: (played) => stepsOf(played).some(({ forced }) => forced),
  },
  entropyBranching: { hooks: entropyBranching(), shows: branched },
  thinkWhenUnsure: {
    hooks: thinkWhenUnsure({ threshold: 4.3636, briefPrompt: "B", thinkPrompt: "T" }),
    shows: (played) => new Set(stepsOf(played).map(({ prompt }) => characters.decode(prompt).at(1))).size === 2,
  },
  candidates: {
    hooks: oracle,
    estimator: stateGroups,
    shows: (played) =>
      stepsOf(played).every(
        ({ candidates, score }) => candidates!.length === 2 && candidates!.every((one) => one.score <= score!),
      ),
  },
  "planFirst, with branchAt": {
    hooks: branchAt({ step: 1, branchingFactor: 3 }),
    environment: planFirst(patient),
    shows: branched,
  },
  parallel: {
    environment: parallelCopies(patient, { copies: 2 }),
    estimator: byLetters,
    shows: (played) => stepsOf(played).every(({ action }) => action.split("\n").length === 2),
  },
  lookFirst: {
    environment: lookFirst(patient, { steps: 2 }),
    shows: (played) =>
      stepsOf(played).every(
        ({ at, observation, reward }) =>
          observation.anchor.startsWith("look\n") === at < 2 && (at >= 2 || reward === 0),
      ),
  },
}

const play = async ({ hooks, environment = patient }: Case, concurrency: number) =>
  await rollout({
    ...{
      policy: varied(),
      tokenizer: characters,
      environment,
      concurrency,
      hooks,
      groupSize: 3,
      random: new Random(7),
    },
    ...{ maxPositions: 2000, maxCompletionTokens: 6, maxSteps: 4, temperature: 1, environmentTimeout: 30 },
    tasks: takeTasks(environment, "train", new Random(1), 3),
  })

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-hooks-"))
})
afterEach(() => rm(folder, { recursive: true }))

describe.each(Object.entries(cases))("%s", (_, one) => {
  const { hooks, environment = patient, estimator = gigpo() } = one

  it("has an effect, and is the same with concurrency 1, 7 and 64", async () => {
    const expected = await play(one, 7)
    expect(expected.groups.flatMap(({ episodes }) => episodes).filter(({ outcome }) => outcome === "failed")).toEqual(
      [],
    )
    expect(one.shows(expected)).toBe(true)
    for (const concurrency of [1, 64]) expect(await play(one, concurrency)).toEqual(expected)
  })

  it("is the same after a resume", async () => {
    const setup = () => ({
      ...tableSetup({ policy: varied(), environment, estimator, ...(hooks && { hooks }) }),
      ...{ groups: 2, groupSize: 2, loss: { klWeight: 0 }, evaluation: { every: 0 } },
      rollout: { maxCompletionTokens: 6, maxSteps: 3 },
    })
    const long = (policy: TellingPolicy) => Object.defineProperty(policy, "maxPositions", { value: 2000 })
    const whole = setup()
    long(whole.policy as TellingPolicy)
    const reports: readonly IterationReport[] = await train(whole)
    const before = varied()
    expect(same(whole.policy.logits, before.logits)).toBe(false)
    const rest: IterationReport[] = []
    for (const part of [1, 2]) {
      const resumed = setup()
      long(resumed.policy as TellingPolicy)
      await using run = await Run.open(join(folder, "run"), {}, { resume: part === 2 })
      for await (const report of train({ ...resumed, run })) {
        rest.push(timeless(report))
        if (part === 1 && report.iteration === 2) break
      }
      if (part === 2) expect(same(resumed.policy.logits, whole.policy.logits)).toBe(true)
    }
    expect(rest).toEqual(reports.map(timeless))
  })
})

describe("T²PO", () => {
  it("scores tokens, ends thinking and resamples turns as defined", () => {
    const size = Math.round(Math.E ** 2)
    const scores = t2poScore([-0.5, 0], [1, 0], size)
    expect(scores[0]).toBeCloseTo(0.6 * -0.5 + 0.4 * (1 - 1 / Math.log(size)), 12)
    expect(scores[1]).toBeCloseTo(0.4, 12)
    const flat = (n: number) => [0, 1, ...Array(n).fill(1)]
    expect([t2poCut(flat(19)), t2poCut(flat(20)), t2poCut(flat(50))]).toEqual([undefined, 22, 22])
    const moving = (n: number) => Array.from({ length: n }, (_, t) => t)
    expect([t2poCut(moving(449)), t2poCut(moving(450)), t2poCut(moving(600))]).toEqual([undefined, 450, 450])
    expect([t2poResamples(0.5, 0.4, 0), t2poResamples(0.5, 0.4, 2), t2poResamples(0.5, 0.5, 0)]).toEqual([
      true,
      false,
      false,
    ])
    expect([t2poResamples(0.8, 0.4, 0), t2poResamples(0.5, undefined, 0)]).toEqual([false, false])
  })

  it("inserts the end of a thought into the completion, with log-probability 0 and weight 0", async () => {
    const seen: (readonly string[])[] = []
    for (const step of stepsOf(await play({ hooks: t2po(thoughts), shows: branched }, 4))) {
      const { completion, forced, logProbs, entropies } = step
      if (!forced) continue
      const at = [...forced.keys()].filter((t) => forced[t] === 1)
      expect(at).toHaveLength(1)
      expect(at[0]).toBeLessThanOrEqual(3)
      expect([String.fromCharCode(completion[at[0]!]!), logProbs[at[0]!], entropies![at[0]!]]).toEqual(["!", 0, 0])
      expect(completion.length).toBeGreaterThan(at[0]! + 1)
      // What comes after was sampled from the prompt with all before it.
      const prompt = Int32Array.of(...step.prompt, ...completion.subarray(0, at[0]! + 1))
      const segments = [{ start: prompt.length, length: completion.length - at[0]! - 1 }]
      const row = await varied().logProbs([{ tokens: Int32Array.of(...step.prompt, ...completion), segments }])
      for (const [t, value] of row.logProbs.entries()) expect(logProbs[at[0]! + 1 + t]).toBeCloseTo(value, 5)
      seen.push(at.map(String))
    }
    expect(seen.length).toBeGreaterThan(10)
  })

  it.each([
    ["without a thought", "a".repeat(2000), 2000],
    ["whose thought ends", `<think>${"a".repeat(100)}</think>${"b".repeat(2000)}`, 2115],
    ["whose thought goes on", `${"b".repeat(50)}<think>${"a".repeat(2000)}`, 507],
  ])("reads a reply %s a few times over as it comes, and stops a long thought at its token", async (_, text, told) => {
    let decoded = 0
    const decode: typeof characters.decode = (ids, how) => {
      decoded += ids.length
      return characters.decode(ids, how)
    }
    const tokens = characters.encode(text)
    const turn = { tokenizer: { ...characters, decode }, vocabularySize: 128 } as SamplingTurn
    const request = { prompt: tokens, maxTokens: 4096, temperature: 1, stopTokens: [], key: new Random(1).key }
    const lengths: number[] = []
    const sample: SamplingTurn["sample"] = async ({ onTokens }) => {
      let count = 1
      while (count < tokens.length && onTokens?.(tokens.subarray(count - 1, count)) !== true) count++
      lengths.push(count)
      const top = Array.from({ length: count }, (_, t) => [{ token: 0, logProb: t }])
      const [logProbs, entropies] = [new Float32Array(count), new Float32Array(count)]
      return { tokens: tokens.subarray(0, count), logProbs, entropies, top, finishReason: "stop" }
    }
    await t2po().sample!({ ...turn, request, sample }, {} as HookContext)
    expect(lengths[0]).toBe(told)
    expect(decoded).toBeLessThan(20 * told)
  })

  it("requires a policy that reports the needed statistics", async () => {
    const { TablePolicy } = await import("../training/table-policy.ts")
    const setup = { ...tableSetup({ policy: new TablePolicy(), environment: patient }), evaluation: { every: 0 } }
    await expect(train({ ...setup, hooks: t2po() })).rejects.toThrow(
      /t2po needs the log-probabilities of the most likely tokens/,
    )
    await expect(train({ ...setup, hooks: entropyBranching() })).rejects.toThrow(/needs the entropies of completions/)
  })
})

it("ARPO branches at random, more often after a rise of the entropy", () => {
  expect([arpoBranches(0.5, 0.2, 0.2), arpoBranches(0.51, 0.2, 0.2), arpoBranches(0.55, 0.4, 0.2)]).toEqual([
    true,
    false,
    true,
  ])
  expect(arpoBranches(0.45, 0.1, 0.3)).toBe(false)
})
