import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { Batch, Credit } from "../../src/credit/estimator.ts"
import type { Environment } from "../../src/environment/environment.ts"
import type { LossInput } from "../../src/loss/token-loss.ts"
import type { IterationReport } from "../../src/runs/report.ts"
import { Run } from "../../src/runs/run.ts"
import type { RunObserver } from "../../src/training/observers.ts"
import type { TrainSetup } from "../../src/training/prepare.ts"
import type { CollectedStep } from "../../src/training/steps.ts"
import { train } from "../../src/training/train.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { characters, TablePolicy } from "./table-policy.ts"
import { openDoors, timeless } from "./tiny.ts"

// What estimators and losses ask of the loop, through an engine in plain TypeScript.

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-baselines-"))
})
afterEach(() => rm(folder, { recursive: true }))

const setup = (changes: Partial<TrainSetup> & { readonly policy?: TablePolicy } = {}) => ({
  policy: new TablePolicy(),
  tokenizer: characters,
  environment: openDoors(),
  iterations: 3,
  groups: 3,
  groupSize: 4,
  stepsPerUpdate: 8,
  optimizer: { learningRate: 5, warmup: 0, maxGradientNorm: Number.POSITIVE_INFINITY },
  ...changes,
  rollout: { maxCompletionTokens: 2, ...changes.rollout },
})

/** A loss that keeps what it was given, and learns nothing. */
function watch() {
  const seen: LossInput[] = []
  const loss = (input: LossInput) => {
    seen.push({ ...input, advantages: input.advantages.slice() })
    return { loss: 0, gradient: new Float32Array(input.tokens) }
  }
  return { seen, loss }
}

describe("a critic", () => {
  const learning = {
    iterations: 40,
    groups: 8,
    groupSize: 8,
    stepsPerUpdate: 64,
    estimator: { name: "ppo", gamma: 1, lambda: 0.95 },
    critic: { stepsPerUpdate: 32, optimizer: { learningRate: 0.3 } },
    optimizer: { learningRate: 1 },
    rollout: { maxCompletionTokens: 1 },
  } as const

  it("learns to predict returns while the policy learns from it", async () => {
    const reports = await train({ ...setup({ environment: doorsEnvironment() as Environment }), ...learning })
    const late = (name: string) => reports.slice(-5).reduce((sum, { metrics }) => sum + metrics[name]!, 0) / 5
    expect(reports[0]!.metrics).not.toHaveProperty(["critic/explained-variance"]) // all returns are 0
    expect(late("critic/explained-variance")).toBeGreaterThan(0.15)
    expect(late("episode/rooms")).toBeGreaterThan(5 * reports[0]!.metrics["episode/rooms"]!)
    expect(late("critic/loss")).toBeGreaterThan(0)
  })

  it("continues from a checkpoint as without interruption", async () => {
    const how = { ...learning, iterations: 4, groups: 2, groupSize: 4 }
    const whole = { ...setup(), ...how }
    const reports = await train(whole)
    const directory = join(folder, "run")
    for (const part of [1, 2]) {
      const resumed = { ...setup(), ...how }
      await using run = await Run.open(directory, {}, { resume: part === 2 })
      for await (const { iteration } of train({ ...resumed, run })) if (part === 1 && iteration === 2) break
      if (part === 1) continue
      expect(resumed.policy.logits).toEqual(whole.policy.logits)
      expect((await resumed.policy.critic()).values).toEqual((await whole.policy.critic()).values)
    }
    const lines = (await readFile(join(directory, "metrics.jsonl"), "utf8")).trim().split("\n")
    expect(lines.map((line) => timeless(JSON.parse(line) as IterationReport))).toEqual(reports.map(timeless))
    expect(await readdir(join(directory, "checkpoints", "iteration-4", "critic"))).toEqual(["values.bin"])
  })

  it("can be trained before the policy", async () => {
    const policy = new TablePolicy()
    const critic = { warmupIterations: 2, optimizer: { learningRate: 3 } }
    const reports: number[] = []
    for await (const { metrics } of train({ ...setup({ policy }), ...learning, iterations: 3, critic })) {
      reports.push(policy.steps)
      expect(metrics["critic/gradient-norm"]).toBeGreaterThan(0)
    }
    expect(reports.slice(0, 2)).toEqual([0, 0])
    expect(reports[2]).toBeGreaterThan(0)
  })

  it("ends the run if it diverges, and is not saved", async () => {
    for (const fault of ["gradient", "values"]) {
      const policy = new TablePolicy()
      const critic = await policy.critic()
      const { optimizerStep } = critic
      if (fault === "gradient")
        critic.optimizerStep = async () => ({ gradientNorm: Number.POSITIVE_INFINITY, skipped: true })
      else
        critic.optimizerStep = async (step) => {
          critic.values.fill(Number.NaN)
          return await optimizerStep.call(critic, step)
        }
      const directory = join(folder, fault)
      await using run = await Run.open(directory, {})
      const ended = train({ ...setup({ policy }), ...learning, iterations: 3, run })
      await expect(ended).rejects.toMatchObject({ code: "NON_FINITE", message: expect.stringMatching(/critic|value/) })
      expect(await readdir(join(directory, "checkpoints")).catch(() => []), fault).toEqual([])
    }
  })

  it("is rejected if the engine does not support it, or the estimator gives no returns", async () => {
    const policy = Object.assign(new TablePolicy(), { critic: undefined }) as never
    await expect(train({ ...setup(), ...learning, policy })).rejects.toThrow(/ppo needs a critic/)
    const estimator = {
      name: "mine",
      needs: ["value"],
      estimate: ({ length }: Batch) => ({ advantages: new Float64Array(length) }),
    } as const
    await expect(train({ ...setup(), estimator })).rejects.toThrow(/returned no returns/)
  })
})

describe("a greedy baseline", () => {
  it("is the return of a greedily decoded episode, one per task", async () => {
    const batches: Batch[] = []
    const estimator = {
      name: "mine",
      needs: ["greedy"],
      estimate: (batch: Batch): Credit => {
        batches.push(batch)
        return { advantages: new Float64Array(batch.length) }
      },
    } as const
    await train({ ...setup({ environment: doorsEnvironment() as Environment }), estimator, iterations: 2 })
    for (const { baselines, task, length } of batches) {
      expect(baselines).toHaveLength(length)
      const byTask = new Map(Array.from(task, (id, step) => [id, baselines![step]]))
      for (const [step, id] of task.entries()) expect(baselines![step]).toBe(byTask.get(id))
    }
  })
})

describe("old log-probabilities", () => {
  it("are the trainer's if recomputed, and the mismatch is reported in both cases", async () => {
    // A sampler that is off by a tenth of a nat.
    class Off extends TablePolicy {
      override async sample(request: Parameters<TablePolicy["sample"]>[0]) {
        const completion = await super.sample(request)
        return { ...completion, logProbs: completion.logProbs.map((value) => value - 0.1) }
      }
    }
    for (const oldLogProbs of ["sampled", "recomputed"] as const) {
      const { seen, loss } = watch()
      const observed: CollectedStep[] = []
      const observers = [
        { episodes: (...[, , , steps]: Parameters<NonNullable<RunObserver["episodes"]>>) => observed.push(...steps) },
      ]
      const [report] = await train({ ...setup({ policy: new Off() }), iterations: 1, loss, oldLogProbs, observers })
      const difference = oldLogProbs === "sampled" ? 0.1 : 0
      for (const { logProbs, oldLogProbs: old } of seen)
        for (const [t, value] of logProbs.entries()) expect(value - old[t]!).toBeCloseTo(difference, 5)
      expect(report!.metrics["mismatch/kl"]).toBeCloseTo(-0.1, 5)
      expect(observed.length).toBeGreaterThan(0)
      for (const { record, trainerLogProbs } of observed) {
        expect(trainerLogProbs === undefined).toBe(oldLogProbs === "sampled")
        for (const [t, value] of trainerLogProbs?.entries() ?? [])
          expect(value - record.logProbs[t]!).toBeCloseTo(0.1, 5)
      }
    }
  })

  it("are corrected by importance weights", async () => {
    class Off extends TablePolicy {
      override async sample(request: Parameters<TablePolicy["sample"]>[0]) {
        const completion = await super.sample(request)
        return { ...completion, logProbs: completion.logProbs.map((value) => value - 0.1) }
      }
    }
    const { seen, loss } = watch()
    const rolloutCorrection = { level: "token", truncate: 2 } as const
    const how = { ...setup({ policy: new Off() }), iterations: 1, loss, rolloutCorrection }
    await expect(train(how)).rejects.toThrow(/set oldLogProbs to "recomputed"/)
    await train({ ...how, oldLogProbs: "recomputed" })
    for (const { weights } of seen) for (const weight of weights!) expect(weight).toBeCloseTo(Math.exp(0.1), 5)
  })
})

describe("rewards", () => {
  it("are reduced by a KL penalty in the reward", async () => {
    const policy = new TablePolicy()
    const batches: Batch[] = []
    const estimator = (batch: Batch) => {
      batches.push(batch)
      return { advantages: Float64Array.from(batch.rewards, (_, step) => (step % 3) - 1) }
    }
    const how = { ...setup({ policy }), estimator, iterations: 3 }
    const reports = await train({ ...how, loss: { klWeight: 0.5, klPlacement: "reward", klEstimator: "k1" } })
    expect(reports[0]!.metrics["reward/kl"]).toBeCloseTo(0, 6)
    expect(reports[2]!.metrics["reward/kl"]).not.toBeCloseTo(0, 3)
    const last = batches.at(-1)!
    for (const [step, reward] of last.rewards.entries()) {
      const tokens = last.tokenRewards![step]!
      expect(tokens).toHaveLength(last.lengths[step]!)
      expect([...tokens].reduce((sum, value) => sum + value, 0)).toBeCloseTo(reward, 5)
    }
    // Only the last token has a reward of its own: the others are the penalty alone.
    expect(last.tokenRewards!.some((tokens) => tokens.length > 1 && tokens[0] !== 0)).toBe(true)
  })

  it("are reduced for completions close to the length limit", async () => {
    const rewards = async (overlong: object | undefined) => {
      const batches: Batch[] = []
      const estimator = (batch: Batch) => {
        batches.push(batch)
        return { advantages: new Float64Array(batch.length) }
      }
      await train({
        ...setup({ rollout: { maxCompletionTokens: 4 } }),
        estimator,
        iterations: 1,
        overlong: overlong as never,
      })
      return batches[0]!
    }
    const [plain, shaped] = [await rewards(undefined), await rewards({ cache: 2, weight: 3 })]
    for (const [step, length] of shaped.lengths.entries())
      expect(plain.rewards[step]! - shaped.rewards[step]!).toBeCloseTo(length <= 2 ? 0 : (3 * (length - 2)) / 2, 6)
    expect(shaped.lengths.some((length) => length === 4)).toBe(true)
  })
})

describe("the weight of the KL", () => {
  it("adapts to a target, over iterations and after a resume", async () => {
    const loss = { klWeight: 0.2, adaptiveKl: { target: 1e-6, horizon: 100 } }
    const whole = setup()
    const reports = await train({ ...whole, loss })
    const weights = reports.map(({ metrics }) => metrics["loss/kl-weight"]!)
    expect(weights[2]).toBeGreaterThan(weights[1]!)
    const directory = join(folder, "run")
    for (const part of [1, 2]) {
      await using run = await Run.open(directory, {}, { resume: part === 2 })
      for await (const { iteration } of train({ ...setup(), run, loss })) if (part === 1 && iteration === 2) break
    }
    const lines = (await readFile(join(directory, "metrics.jsonl"), "utf8")).trim().split("\n")
    expect(lines.map((line) => JSON.parse(line).metrics["loss/kl-weight"])).toEqual(weights)
  })

  it("must start as a number", async () => {
    await expect(train({ ...setup(), loss: { adaptiveKl: { target: 1 } } })).rejects.toThrow(
      /set loss\.klWeight to a number/,
    )
    const ramp = { klWeight: { from: 0.1, to: 0.2 }, adaptiveKl: { target: 1 } }
    await expect(train({ ...setup(), loss: ramp })).rejects.toThrow(/set loss\.klWeight to a number/)
  })
})

describe("dynamic sampling", () => {
  it("replaces groups with equal returns, within a limit, and continues if there are no others", async () => {
    const environment = doorsEnvironment() as Environment
    const [report] = await train({ ...setup({ environment }), dynamicSampling: true, iterations: 1, groups: 4 })
    expect(report!.metrics["group/dropped"]).toBeGreaterThan(0)
    const equal = {
      score: (group: { readonly episodes: readonly { readonly steps: readonly object[] }[] }) =>
        group.episodes.map((episode) => ({
          ...episode,
          steps: episode.steps.map((step) => ({ ...step, reward: 0 })),
        })) as never,
    }
    const reports = await train({
      ...setup({ hooks: equal }),
      dynamicSampling: true,
      rollout: { maxCompletionTokens: 2, maxRefillRounds: 2 },
    })
    // Three rounds are played; of what all were the same in, as much is learned from as was wanted.
    for (const { metrics } of reports) expect(metrics).toMatchObject({ "episode/count": 36, "group/dropped": 6 })
  })

  it("never learns from groups that a hook dropped", async () => {
    const learned: Batch[] = []
    const estimator = (batch: Batch) => {
      learned.push(batch)
      return { advantages: new Float64Array(batch.length) }
    }
    const environment = doorsEnvironment() as Environment
    const hooks = { keep: () => false }
    await train({ ...setup({ environment, hooks }), estimator, dynamicSampling: true, groups: 12, iterations: 10 })
    for (const { rewards, task, episode } of learned) {
      const returns = new Map<number, number>()
      for (const [step, id] of episode.entries()) returns.set(id, (returns.get(id) ?? 0) + rewards[step]!)
      const byTask = new Map<number, Set<number>>()
      for (const [step, id] of task.entries())
        byTask.set(id, (byTask.get(id) ?? new Set()).add(returns.get(episode[step]!)!))
      for (const values of byTask.values()) expect(values.size).toBe(1)
    }
    expect(learned).toHaveLength(10)
  })
})

describe("rejects incompatible options", () => {
  it.each<[object, RegExp]>([
    [{ updatesPerEpoch: 2, episodesPerUpdate: 3 }, /updatesPerEpoch and episodesPerUpdate/],
    [{ overlong: { cache: 3 } }, /overlong.cache is 3, but completions have at most 2 tokens/],
    [{ dynamicSampling: true, groupSize: 1 }, /dynamicSampling compares/],
    [
      { oldLogProbs: "recomputed", rolloutCorrection: { dropBelow: 2, dropAbove: 1 } },
      /dropBelow is 2 and dropAbove is 1, which drops all tokens/,
    ],
  ])("%j are rejected before anything is touched", async (options, message) => {
    const directory = join(folder, "run")
    await using run = await Run.open(directory, {})
    const refused = expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) })
    await expect(train({ ...setup(), run, ...options })).rejects.toEqual(refused)
    expect(await readdir(folder)).toEqual([])
  })
})

describe("off-policy rows", () => {
  it("are learned from together with a critic, which ignores them", async () => {
    const extra = {
      tokens: Int32Array.of(1, 2, 3),
      segments: [{ start: 1, length: 2, logProbs: new Float32Array(2).fill(-4), advantage: 1, task: 0, episode: 0 }],
    }
    const estimator = {
      name: "mine",
      needs: ["value"],
      estimate: ({ length, lengths }: Batch): Credit => ({
        advantages: new Float64Array(length),
        returns: Array.from(lengths, (tokens) => new Float32Array(tokens)),
        extraSequences: [extra],
        skip: Uint8Array.from({ length }, (_, step) => (step === 0 ? 1 : 0)),
      }),
    } as const
    const { seen, loss } = watch()
    const [report] = await train({ ...setup(), estimator, loss, iterations: 1, stepsPerUpdate: 1000 })
    expect(seen[0]!.episodes.filter((id) => id === -1)).toHaveLength(1)
    expect(report!.metrics["critic/loss"]).toBeGreaterThanOrEqual(0)
    await expect(train({ ...setup(), estimator, loss: { klWeight: 1 } })).rejects.toThrow(
      /extraSequences\[0\] without reference/,
    )
  })
})
