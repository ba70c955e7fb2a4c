import { mkdtemp } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { wrapEstimator } from "../../src/credit/as-estimator.ts"
import { grpo } from "../../src/credit/grpo.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { sokoban } from "../../src/environment/sokoban/sokoban.ts"
import { rolloutDefaults } from "../../src/rollout/options.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { takeTasks } from "../../src/rollout/tasks.ts"
import type { IterationReport } from "../../src/runs/report.ts"
import { initializeModel } from "../../src/sft/initialize.ts"
import { needsOf } from "../../src/training/make.ts"
import type { TrainOptions } from "../../src/training/options.ts"
import { train } from "../../src/training/train.ts"
import { Random } from "../../src/util/random.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { all, openDoors, TinyModel, timeless } from "./tiny.ts"

const doors = new TinyModel(doorsEnvironment() as Environment)

const small: TrainOptions = {
  iterations: 2,
  groups: 4,
  groupSize: 4,
  stepsPerUpdate: 16,
  rollout: { maxCompletionTokens: 4 },
  optimizer: { learningRate: 1e-2 },
}

async function run(options: TrainOptions = {}, environment: Environment = openDoors()) {
  const model = await doors.open()
  const reports = await all(train({ ...model, environment, ...small, ...options }))
  return { ...model, reports, weights: await doors.weights(model.policy) }
}

const metric = (reports: readonly IterationReport[], name: string) => reports.map(({ metrics }) => metrics[name])

describe("training", () => {
  it("reports each iteration with finite metrics and changes the weights", async () => {
    const { reports, weights, policy } = await run()
    expect(reports.map(({ iteration }) => iteration)).toEqual([1, 2])
    for (const { metrics, evaluation } of reports) {
      expect(evaluation).toBeUndefined()
      expect(Object.values(metrics).every(Number.isFinite)).toBe(true)
      expect(metrics).toMatchObject({ "episode/count": 16, "episode/failed": 0, "optimizer/skipped": 0 })
      expect(metrics["completion/tokens"]).toBeLessThanOrEqual(4)
      expect(metrics["group/constant"]).toBeLessThan(1)
      for (const part of ["rollout", "advantage", "update", "iteration"])
        expect(metrics[`time/${part}`]).toBeGreaterThanOrEqual(0)
    }
    expect(policy.optimizerSteps).toBe(metric(reports, "optimizer/steps").reduce((sum, steps) => sum! + steps!, 0))
    expect(weights).not.toBe(await doors.weights((await doors.open()).policy))
  })

  it("is determined by the seed", async () => {
    const one = await run({ seed: 5 })
    const same = await run({ seed: 5 })
    expect(same.reports.map(timeless)).toEqual(one.reports.map(timeless))
    expect(same.weights).toBe(one.weights)
    const other = await run({ seed: 6 })
    expect(other.reports.map(timeless)).not.toEqual(one.reports.map(timeless))
  })

  it("draws new tasks for each iteration, the same for all members of a group", async () => {
    const drawn: string[] = []
    const environment = openDoors({
      start: async (task, context) => {
        drawn.push(task.rooms.join())
        return await doorsEnvironment().start(task, context)
      },
    })
    await run({ groups: 8, groupSize: 2, rollout: { maxCompletionTokens: 4, concurrency: 1 } }, environment)
    expect(drawn).toHaveLength(32)
    const pairs = drawn.filter((_, index) => index % 2 === 0)
    expect(drawn.filter((_, index) => index % 2 === 1)).toEqual(pairs)
    expect(pairs.slice(8)).not.toEqual(pairs.slice(0, 8))
  })

  it("follows the schedule of the learning rate", async () => {
    const optimizer = { learningRate: 0.01, warmup: 1, schedule: "linear" as const }
    const { reports } = await run({ iterations: 4, groups: 1, optimizer })
    const rates = [0.01, 0.01, 0.02 / 3, 0.01 / 3]
    for (const [index, rate] of metric(reports, "optimizer/learning-rate").entries())
      expect(rate).toBeCloseTo(rates[index]!, 10)
  })

  it("passes over the rows once per epoch, in batches", async () => {
    const { reports, policy } = await run({ iterations: 1, epochs: 2, stepsPerUpdate: 5 })
    const [report] = reports
    const rows = report!.metrics["episode/steps"]! * 16
    expect(policy.optimizerSteps).toBe(2 * Math.ceil(rows / 5))
    expect(report!.metrics["optimizer/steps"]).toBe(policy.optimizerSteps)
    expect(report!.metrics["policy/ratio"]).not.toBe(1)
  })

  it("starts from the weights that sampled the rows", async () => {
    const { reports } = await run({ iterations: 1, stepsPerUpdate: 1000 })
    expect(reports[0]!.metrics["policy/ratio"]).toBeCloseTo(1, 4)
    expect(reports[0]!.metrics["policy/kl"]).toBeCloseTo(0, 4)
    expect(reports[0]!.metrics["policy/clip-fraction"]).toBe(0)
  })

  it("with GRPO has no step level", async () => {
    const { reports } = await run({ estimator: { name: "grpo" } })
    const names = Object.keys(reports[0]!.metrics)
    expect(names).toContain("group/constant")
    expect(names.filter((name) => name.startsWith("step-group/"))).toEqual([])
    const gigpo = await run()
    expect(Object.keys(gigpo.reports[0]!.metrics)).toContain("step-group/count")
    // The same episodes, other credit.
    expect(reports[0]!.metrics["episode/return"]).toBe(gigpo.reports[0]!.metrics["episode/return"])
    expect(reports[0]!.metrics["advantage/std"]).not.toBe(gigpo.reports[0]!.metrics["advantage/std"])
  })

  it("with a KL weight stays closer to the initial policy", async () => {
    const options = { iterations: 10, stepsPerUpdate: 1000, optimizer: { learningRate: 3e-3 } }
    const held = metric((await run({ ...options, loss: { klWeight: 5 } })).reports, "loss/kl")
    // A weight this small only measures.
    const free = metric((await run({ ...options, loss: { klWeight: 1e-9 } })).reports, "loss/kl")
    expect(held[0]).toBeCloseTo(0, 5)
    expect(held[1]).toBeGreaterThan(1e-3)
    const late = (kl: typeof held) => kl.slice(5).reduce((sum, value) => sum! + value!)!
    expect(late(held)).toBeLessThan(late(free) / 2)
  })

  it("with an entropy bonus becomes more random, if there is nothing else to learn", async () => {
    const environment = openDoors({
      step: async (_action, episode) => ({ ...(await episode.step("wait")), reward: 0.25, terminated: true }),
    })
    const optimizer = { learningRate: 3e-3, weightDecay: 0 }
    const { reports } = await run({ iterations: 3, loss: { entropyWeight: 0.1 }, optimizer }, environment)
    const [first, , last] = metric(reports, "policy/entropy")
    expect(last).toBeGreaterThan(first! + 0.05)
    expect(metric(reports, "group/constant")).toEqual([1, 1, 1])
    // Without it there is no gradient at all.
    const still = await run({ optimizer }, environment)
    expect(metric(still.reports, "optimizer/gradient-norm")).toEqual([0, 0])
    expect(still.weights).toBe(await doors.weights((await doors.open()).policy))
    for (const { metrics } of still.reports) expect(Object.values(metrics).every(Number.isFinite)).toBe(true)
  })

  it("skips steps with non-finite gradients, and counts them", async () => {
    const { reports, weights, policy } = await run({ loss: { entropyWeight: 3e38 }, guards: { maxNonFinite: 100 } })
    for (const { metrics } of reports) {
      expect(metrics).toMatchObject({ "optimizer/steps": 0 })
      expect(metrics).not.toHaveProperty("optimizer/gradient-norm")
      expect(metrics["optimizer/skipped"]).toBeGreaterThan(0)
    }
    expect(policy.optimizerSteps).toBe(0)
    expect(weights).toBe(await doors.weights((await doors.open()).policy))
  })

  it("evaluates before the first, after every nth and after the last iteration", async () => {
    const { reports } = await run({ iterations: 5, groups: 2, evaluation: { every: 2, tasks: 3 } })
    expect(reports.map(({ iteration, evaluation }) => [iteration, evaluation?.episodes])).toEqual([
      [0, 3],
      [1, undefined],
      [2, 3],
      [3, undefined],
      [4, 3],
      [5, 3],
    ])
    expect(timeless(reports[0]!).metrics).toEqual({})
    const without = await run({ iterations: 5, groups: 2 })
    expect(reports.slice(1).map((report) => timeless(report).metrics)).toEqual(
      without.reports.map((report) => timeless(report).metrics),
    )
  })

  it("reports its progress", async () => {
    const model = await doors.open()
    const told: string[] = []
    const options = { ...small, iterations: 1, evaluation: { every: 1, tasks: 2 } }
    for await (const _ of train({
      ...model,
      environment: openDoors(),
      ...options,
      onProgress: ({ stage, done, total }) => done === total && told.push(`${stage} ${total}`),
    }));
    expect(told).toEqual(["evaluation 2", "rollout 16", expect.stringMatching(/^update \d$/), "evaluation 2"])
  })

  it("uses all tasks if there are fewer than groups", async () => {
    const { reports } = await run({ groups: 8 }, openDoors({ count: 3 }))
    expect(metric(reports, "episode/count")).toEqual([12, 12])
  })
})

describe("training on Sokoban", () => {
  const environment = sokoban({ rules: false, history: 0, thinking: "off", maxSteps: 4 }) as Environment
  const rooms = new TinyModel(environment, { layers: 2 })

  it("samples the same tokens with concurrency 1, 7 and 64", async () => {
    const results = []
    for (const concurrency of [1, 7, 64]) {
      const { policy, tokenizer } = await rooms.open()
      const setup = { ...rolloutDefaults, policy, tokenizer, environment, maxPositions: policy.maxPositions }
      const random = new Random(4)
      const tasks = takeTasks(environment, "train", random, 8)
      const { groups } = await rollout({ ...setup, tasks, groupSize: 4, random, concurrency, maxCompletionTokens: 6 })
      results.push(groups.map(({ episodes }) => episodes))
    }
    expect(results[1]).toEqual(results[0])
    expect(results[2]).toEqual(results[0])
    const completions = results[0]!.flat().flatMap(({ steps }) => steps.map(({ completion }) => completion.join()))
    expect(completions).toHaveLength(8 * 4 * 4)
    expect(new Set(completions).size).toBeGreaterThan(100)
  })

  it("gives the same metrics and weights with concurrency 1 and 64", async () => {
    const results = []
    for (const concurrency of [1, 64]) {
      const model = await rooms.open()
      const rollout = { ...small.rollout, concurrency }
      const reports = await all(train({ ...model, environment, ...small, rollout }))
      results.push({ reports: reports.map(timeless), weights: await rooms.weights(model.policy) })
    }
    expect(results[1]).toEqual(results[0])
    expect(results[0]!.reports[0]!.metrics["step-group/size"]).toBeGreaterThan(1)
  })
})

describe("training in an environment that fails", () => {
  const go: TrainOptions = { guards: { maxFailed: 1 } }

  /** Fails a share of the episodes, the same ones whenever they run. */
  const failing = (share: number) =>
    openDoors({
      start: async (task, context) => {
        if (context.random.derive("fault").uniform() < share) throw new Error("no server")
        return await doorsEnvironment().start(task, context)
      },
    })

  it("counts failed episodes and ignores them", async () => {
    const { reports } = await run(go, failing(0.5))
    for (const { metrics } of reports) {
      expect(metrics["episode/failed"]).toBeGreaterThan(0.1)
      expect(metrics["episode/failed"]).toBeLessThan(0.9)
      expect(metrics["episode/count"]).toBe(16)
      expect(metrics["episode/steps"]).toBeGreaterThanOrEqual(1)
    }
  })

  it("learns from the others, even from a single episode of a group", async () => {
    const { reports } = await run({ groupSize: 2, groups: 8, ...go }, failing(0.5))
    for (const { metrics } of reports) expect(Object.values(metrics).every(Number.isFinite)).toBe(true)
    const alone = await run({ groupSize: 1 })
    expect(metric(alone.reports, "episode/count")).toEqual([4, 4])
    for (const { metrics } of alone.reports) expect(Object.values(metrics).every(Number.isFinite)).toBe(true)
  })

  it("rejects groups of one if its estimator compares episodes, or warns if it compares states, too", async () => {
    const warned = async (estimator: TrainOptions["estimator"], changes: TrainOptions = {}) => {
      const warnings: string[] = []
      const started = all(
        train({
          ...(await doors.open()),
          environment: openDoors(),
          ...{ iterations: 1, groups: 2, groupSize: 1, rollout: { maxCompletionTokens: 2 }, estimator, ...changes },
          onWarning: (message) => warnings.push(message),
        }),
      )
      return await started.then(
        () => warnings,
        (error) => error,
      )
    }
    for (const name of ["grpo", "dr-grpo", "rloo", "opo", "gpg", "pass-at-k", "gdpo"] as const) {
      const refused = { code: "BAD_ARGUMENT", message: expect.stringMatching(/learns nothing.*Set groupSize to 2/) }
      expect(await warned({ name })).toMatchObject(refused)
    }
    expect(await warned({ name: "gigpo", omega: 0 })).toMatchObject({ code: "BAD_ARGUMENT" })
    expect(await warned(wrapEstimator(grpo(), { name: "mine", change: (credit) => credit }))).toMatchObject({
      message: expect.stringContaining("the estimator mine compares"),
    })
    const little = [expect.stringMatching(/^The estimator gigpo compares .* learns little/)]
    expect(await warned({ name: "gigpo" })).toEqual(little)
    // What keeps the return of a lone episode learns from it, as do those that compare with nothing.
    expect(await warned({ name: "grpo", singletonEpisode: "raw" })).toEqual([])
    for (const name of ["gigpo-verl-agent", "remax", "reinforce-plus-plus"] as const)
      expect(await warned({ name })).toEqual([])
    expect(await warned({ name: "grpo" }, { groupSize: 2 })).toEqual([])
    expect(() => needsOf({ estimator: { name: "grpo" }, groupSize: 1 })).toThrow(/learns nothing/)
  })

  it("ends with the first error if no episode is left", async () => {
    await expect(run(go, failing(1))).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: "No episode of the iteration can be trained on. The first error: doors: no server",
    })
  })

  it("gives advice if no prompt fits the model", async () => {
    const { maxPositions } = (await doors.open()).policy
    await expect(run({ rollout: { maxCompletionTokens: maxPositions - 1 } })).rejects.toMatchObject({
      code: "BAD_ENVIRONMENT",
      message: expect.stringMatching(
        new RegExp(
          `the model's ${maxPositions} positions .*Raise maxPositions or shorten .* rollout.maxCompletionTokens .${maxPositions - 1}.`,
        ),
      ),
    })
    await expect(run({ rollout: { maxCompletionTokens: 100_000 } })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringContaining(
        `rollout.maxCompletionTokens is 100000, but the model has ${maxPositions} positions (maxPositions)`,
      ),
    })
  })

  it("reports that there are no tasks", async () => {
    await expect(run({}, openDoors({ count: 0 }))).rejects.toMatchObject({
      code: "BAD_ENVIRONMENT",
      message: "doors offers no train tasks.",
    })
  })
})

describe("bad options", () => {
  it.each<[TrainOptions, RegExp]>([
    [{ iterations: 0 }, /train: iterations must be at least 1, not 0/],
    [{ groups: 0 }, /groups must be at least 1, not 0/],
    [{ groupSize: 1.5 }, /groupSize must be an integer, not 1.5/],
    [{ stepsPerUpdate: Number.NaN }, /stepsPerUpdate must be a number, not NaN/],
    [{ epochs: -1 }, /epochs must be at least 1, not -1/],
    [{ checkpointEvery: 0 }, /checkpointEvery must be at least 1, not 0/],
    [{ keepCheckpoints: 0 }, /keepCheckpoints must be at least 1, not 0/],
    [{ rollout: { concurrency: 0 } }, /rollout.concurrency must be an integer from 1 to 65536, not 0/],
    [{ rollout: { maxSteps: 0 } }, /rollout.maxSteps must be at least 1, not 0/],
    [{ rollout: { environmentTimeout: 0 } }, /rollout.environmentTimeout must be above 0, not 0/],
    [{ rollout: { maxCompletionTokens: 0 } }, /rollout.maxCompletionTokens must be at least 1, not 0/],
    [{ rollout: { temperature: 0 } }, /rollout.temperature must be at least 0.000001, not 0/],
    [{ estimator: { gamma: 2 } }, /estimator.gamma must be above 0 and at most 1, not 2/],
    [{ estimator: { name: "grpo", normalisation: "std" } as object }, /did you mean estimator.normalization/],
    [{ estimator: { name: "rlo" as "grpo" } }, /estimator.name must be .*"gigpo" or .* not "rlo". Did you mean rloo\?/],
    [{ loss: { clipDual: 0.5 } }, /loss.clipDual must be a number above 1, .* not 0.5/],
    [{ optimizer: { learningRate: -1 } }, /optimizer.learningRate must be at least 0, not -1/],
    [{ optimizer: { warmup: -0.5 } }, /optimizer.warmup must be at least 0, not -0.5/],
    [
      { optimizer: { schedule: "step" as "linear" } },
      /optimizer.schedule must be "constant" or "linear" or "cosine", not "step"/,
    ],
  ])("are rejected before the first episode ends: %j", async (wrong, message) => {
    const model = await doors.open()
    const onProgress = () => expect.unreachable()
    const options = { ...small, ...wrong, rollout: { ...small.rollout, ...wrong.rollout } }
    const training = train({ ...model, environment: openDoors(), ...options, onProgress })[Symbol.asyncIterator]()
    await expect(training.next()).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(message),
    })
  })

  it("a model whose vocabulary is too small for the tokenizer is rejected", async () => {
    const { policy } = await doors.open()
    const directory = await mkdtemp(join(doors.folder, "large-"))
    const environment = sokoban() as Environment
    await initializeModel({ directory, environment, options: { hiddenSize: 32, layers: 1, vocabularySize: 400 } })
    const { tokenizer } = await doors.open(directory)
    await expect(train({ policy, tokenizer, environment, ...small })).rejects.toMatchObject({
      code: "BAD_TOKENIZER",
    })
  })
})
