import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { Batch, Credit, Estimator } from "../../src/credit/estimator.ts"
import { gigpo } from "../../src/credit/gigpo.ts"
import type { Environment } from "../../src/environment/environment.ts"
import type { LossInput, TokenLoss } from "../../src/loss/token-loss.ts"
import type { IterationReport } from "../../src/runs/report.ts"
import { Run } from "../../src/runs/run.ts"
import type { RunObserver } from "../../src/training/observers.ts"
import type { TrainSetup } from "../../src/training/prepare.ts"
import { train } from "../../src/training/train.ts"
import { Random } from "../../src/util/random.ts"
import { version } from "../../src/util/version.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { Memory } from "./fake-policy.ts"
import { TablePolicy } from "./table-policy.ts"
import { tableSetup } from "./table-setup.ts"
import { openDoors, timeless } from "./tiny.ts"

// Custom parts, with an engine in plain TypeScript: the loop does not depend on the native one.

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-seams-"))
})
afterEach(() => rm(folder, { recursive: true }))

const environment = doorsEnvironment() as Environment
const setup = tableSetup

describe("a custom engine", () => {
  it("learns with the built-in estimator and loss", async () => {
    const policy = new TablePolicy()
    const learning = {
      iterations: 60,
      groups: 8,
      groupSize: 8,
      stepsPerUpdate: 64,
      rollout: { maxCompletionTokens: 1 },
    }
    const reports = await train({ ...setup({ policy, environment }), ...learning, optimizer: { learningRate: 3 } })
    const success = (from: number, to: number) =>
      reports.slice(from, to).reduce((sum, { metrics }) => sum + metrics["episode/rooms"]!, 0) / (to - from)
    expect(success(0, 10)).toBeLessThan(0.2)
    expect(success(50, 60)).toBeGreaterThan(1.5)
    expect(reports[5]!.metrics).toMatchObject({ "policy/ratio": expect.closeTo(1, 1), "policy/clip-fraction": 0 })
  })

  it("is saved in a run, resumed, and ends as without interruption", async () => {
    const whole = setup()
    const reports = await train({ ...whole, loss: { klWeight: 0.1 } })
    const directory = join(folder, "run")
    for (const part of [1, 2]) {
      const resumed = setup()
      await using run = await Run.open(directory, {}, { resume: part === 2 })
      for await (const { iteration } of train({ ...resumed, run, loss: { klWeight: 0.1 } }))
        if (part === 1 && iteration === 2) break
      if (part === 2) expect(resumed.policy.logits).toEqual(whole.policy.logits)
    }
    const lines = (await readFile(join(directory, "metrics.jsonl"), "utf8")).trim().split("\n")
    expect(lines.map((line) => timeless(JSON.parse(line)))).toEqual(reports.map(timeless))
    expect(await readdir(join(directory, "checkpoints", "iteration-3"))).toEqual(["manifest.json", "table.bin"])
  })

  it("states its limits before anything is changed", async () => {
    const directory = join(folder, "run")
    const policy = Object.assign(new TablePolicy(), { check: async () => ["Clip at 0.2.", "Leave entropy out."] })
    await using run = await Run.open(directory, {})
    await expect(train({ ...setup({ policy }), run })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: "The engine cannot train this. Clip at 0.2. Leave entropy out.",
    })
    const { store: _, ...unsaved } = Object.assign(new TablePolicy())
    await expect(
      train({ ...setup({ policy: Object.setPrototypeOf(unsaved, TablePolicy.prototype) }), run }),
    ).rejects.toThrow(/does not support checkpoints/)
    expect(await readdir(folder)).toEqual([])
  })
})

describe("training", () => {
  it("can be awaited or iterated, once", async () => {
    const awaited = await train(setup())
    const iterated: IterationReport[] = []
    const training = train(setup())
    for await (const report of training) iterated.push(report)
    expect(iterated.map(timeless)).toEqual(awaited.map(timeless))
    await expect((async () => await training)()).rejects.toThrow(/already awaited or iterated/)
    const twice = train(setup())
    expect(await Promise.all([twice, twice])).toHaveLength(2)
    expect(() => twice[Symbol.asyncIterator]()).toThrow(/already/)
  })

  it("does not start before it is awaited or iterated", async () => {
    const policy = new TablePolicy()
    train(setup({ policy }))
    await new Promise(setImmediate)
    expect(policy.steps).toBe(0)
  })

  it.each<[string, object, RegExp]>([
    [
      "an engine that cannot learn",
      { policy: { sample: () => {}, vocabularySize: 1 } },
      /policy\.logProbs must be a function/,
    ],
    [
      "an engine without losses",
      { policy: Object.assign(new TablePolicy(), { losses: undefined }) },
      /losses of the policy must be/,
    ],
    ["half a tokenizer", { tokenizer: { encodeChat: () => {} } }, /tokenizer\.encode must be a function/],
    ["observers that are no list", { observers: {} }, /observers must be a list/],
    ["an observer that is no object", { observers: [() => {}] }, /observers\[0\] must be an object/],
  ])("rejects %s", async (_, wrong, message) => {
    await expect(train({ ...setup(), ...wrong } as never)).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(message),
    })
  })

  it("counts dropped groups, and explains why none is left", async () => {
    let asked = 0
    const [report] = await train(setup({ hooks: { keep: () => ++asked > 2 }, iterations: 1 }))
    expect(report!.metrics["group/dropped"]).toBe(2)
    await expect(train(setup({ hooks: { keep: () => false } }))).rejects.toThrow(/dropped all 33 groups/)
    await expect(train(setup({ tasks: { next: () => undefined } }))).rejects.toThrow(/has no task for this iteration/)
    const play = { environment: undefined, tasks: { next: () => ({}) }, agentLoop: async () => null }
    await expect(train(setup(play as never))).rejects.toThrow(/excluded 12 of 12 \(agentLoop returned null\)/)
  })

  it("saves its progress if the next update fails before its first step", async () => {
    const directory = join(folder, "run")
    await using run = await Run.open(directory, {})
    let iterations = 0
    const loss = (input: LossInput) => {
      if (input.progress.iteration === 2) throw new Error("of its own")
      iterations = input.progress.iteration + 1
      return { loss: 0, gradient: new Float32Array(input.tokens) }
    }
    await expect(train({ ...setup({ loss }), run })).rejects.toThrow("of its own")
    expect([iterations, run.iteration, run.saved]).toEqual([2, 2, true])
  })

  it("limits the length of rows to that of the engine", async () => {
    const policy = Object.assign(new TablePolicy(), { maxTrainTokens: 8 })
    const [report] = await train(setup({ policy, iterations: 1 }))
    const [unlimited] = await train(setup({ iterations: 1 }))
    expect(report!.metrics["episode/overflow"]).toBeGreaterThan(unlimited!.metrics["episode/overflow"]!)
  })

  it("needs an environment, or a player with tasks", async () => {
    const { environment: _, ...without } = setup()
    await expect(train(without)).rejects.toThrow(/environment and agentLoop are missing; give one of them/)
    await expect(train({ ...without, agentLoop: async () => null })).rejects.toThrow(/give tasks, or an environment/)
  })
})

describe("a custom estimator", () => {
  const seen: Batch[] = []
  const mine: Estimator = {
    name: "mine",
    needs: ["old", "reference", "entropy"],
    estimate(batch) {
      seen.push(batch)
      return {
        advantages: Array.from(batch.lengths, (length, step) => new Float32Array(length).fill(batch.rewards[step]!)),
        metrics: { "mine/steps": batch.length },
      }
    },
  }

  it("receives the steps and its needs, and assigns credit to each token", async () => {
    const reports = await train(setup({ estimator: mine }))
    const [batch] = seen
    expect(reports[0]!.metrics["mine/steps"]).toBe(batch!.length)
    expect([...new Set(batch!.episode)].length).toBe(12)
    expect(batch!.terminated.reduce((sum, end) => sum + end, 0)).toBe(12)
    for (const name of ["old", "reference", "entropy"] as const) {
      const values = batch!.statistics![name]!
      expect(values.map(({ length }) => length)).toEqual([...batch!.lengths])
      expect(values.every((of) => of.every(Number.isFinite))).toBe(true)
    }
    // A table begins with equal logits.
    expect(batch!.statistics!.entropy![0]![0]).toBeCloseTo(Math.log(128), 5)
    expect(batch!.statistics!.old![0]).toEqual(batch!.statistics!.reference![0])
  })

  it("receives the text of every token on request", async () => {
    const batches: Batch[] = []
    const reading: Estimator = {
      name: "reading",
      needs: ["text"],
      estimate(batch) {
        batches.push(batch)
        return { advantages: new Float64Array(batch.length) }
      },
    }
    await train(setup({ estimator: reading, iterations: 1 }))
    const [{ tokenTexts, steps, lengths } = {} as Batch] = batches
    expect(tokenTexts!.map((texts) => texts.length)).toEqual([...lengths])
    expect(tokenTexts!.map((texts) => texts.join(""))).toEqual(steps!.map(({ text }) => text))
    expect(tokenTexts!.flat().some((text) => text === "")).toBe(true) // the end of a reply
  })

  it("is combined with token weights", async () => {
    const weights: number[] = []
    const loss = (input: LossInput) => {
      weights.push(...input.weights!)
      return { loss: 0, gradient: new Float32Array(input.tokens) }
    }
    const [report] = await train(setup({ loss, iterations: 1, tokenWeights: { other: 0.5 } }))
    expect(new Set(weights)).toEqual(new Set([0.5]))
    expect(report!.metrics).toMatchObject({ "tokens/think-share": 0 })
  })

  it("can skip steps, which are not counted", async () => {
    const tokens: number[] = []
    const loss: TokenLoss = {
      name: "count",
      evaluate: (input) => {
        tokens.push(input.tokens)
        return { loss: 0, gradient: new Float32Array(input.tokens) }
      },
    }
    const skipping: Estimator["estimate"] = (batch) => ({
      advantages: new Float64Array(batch.length),
      skip: new Uint8Array(batch.length).map((_, step) => step % 2),
    })
    await train(setup({ estimator: skipping, loss, iterations: 1, stepsPerUpdate: 1000 }))
    const all: number[] = []
    await train(
      setup({
        estimator: ({ length }) => ({ advantages: new Float64Array(length) }),
        loss,
        iterations: 1,
        stepsPerUpdate: 1000,
      }),
    )
    all.push(tokens.pop()!)
    expect(tokens[0]).toBeLessThan(all[0]!)
    expect(tokens[0]).toBeGreaterThan(0)
  })

  it.each<[string, (batch: Batch) => unknown, RegExp]>([
    ["too few", () => ({ advantages: new Float64Array(1) }), /mine/],
    ["NaN", ({ length }) => ({ advantages: new Float64Array(length).fill(Number.NaN) }), /mine/],
    ["nothing", () => undefined, /mine/],
  ])("is rejected when it says %s", async (_, estimate, message) => {
    const policy = new TablePolicy()
    const wrong = { name: "mine", estimate: estimate as Estimator["estimate"] }
    await expect(train(setup({ policy, estimator: wrong }))).rejects.toThrow(message)
    expect(policy.steps).toBe(0)
  })

  it("keeps its state over a resume, and is identified by its name", async () => {
    const directory = join(folder, "run")
    const remembering = () => {
      const memory = new Memory("counting")
      const estimate = ({ length }: Batch): Credit => ({ advantages: new Float64Array(length).fill(++memory.count) })
      return Object.assign(memory, { estimate })
    }
    const first = remembering()
    {
      await using run = await Run.open(directory, {})
      for await (const { iteration } of train({ ...setup({ estimator: first }), run })) if (iteration === 2) break
    }
    const second = remembering()
    {
      await using run = await Run.open(directory, {}, { resume: true })
      await train({ ...setup({ estimator: second }), run })
    }
    expect(second.count).toBe(3)
    await using run = await Run.open(directory, {}, { resume: true })
    await expect(train({ ...setup({ estimator: gigpo({}), iterations: 5 }), run })).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: expect.stringMatching(/another estimator: it was counting and is now gigpo/),
    })
  })
})

describe("a teacher", () => {
  const taught = (loss: TrainSetup["loss"], more: Partial<TrainSetup> = {}) => {
    const teacher = new TablePolicy()
    const random = new Random(2)
    for (const i of teacher.logits.keys()) teacher.logits[i] = 3 * random.uniform()
    const { logits } = teacher
    const learning = {
      iterations: 30,
      groups: 8,
      groupSize: 8,
      stepsPerUpdate: 64,
      rollout: { maxCompletionTokens: 1 },
    }
    return { ...setup(), ...learning, loss: loss!, ...more, teacher, logits }
  }
  const divergences = async ({ logits: _, ...given }: ReturnType<typeof taught>) =>
    (await train(given)).map(({ metrics }) => metrics["distillation/divergence"]!)

  it.each<[string, object, number]>([
    ["what was sampled", {}, 8],
    ["the most likely tokens, forward", { divergence: "forward", teacherTop: 64 }, 40],
    ["the most likely tokens, in the middle", { divergence: "jensen-shannon", teacherTop: 64 }, 100],
  ])("is followed by %s", async (_, options, learningRate) => {
    const given = taught(
      { name: "distillation", ...options },
      { optimizer: { learningRate, maxGradientNorm: Infinity } },
    )
    const before = given.teacher.logits.slice()
    const found = await divergences(given)
    const mean = (from: number) => found.slice(from, from + 3).reduce((a, b) => a + b) / 3
    expect(mean(27)).toBeLessThan(0.5 * mean(0))
    expect(given.teacher.logits).toEqual(before)
  })

  it("is also available to an estimator, with its most likely tokens at every position", async () => {
    const batches: Batch[] = []
    const reading: Estimator = {
      name: "reading",
      needs: ["teacher"],
      estimate(batch) {
        batches.push(batch)
        return { advantages: new Float64Array(batch.length) }
      },
    }
    const inputs: LossInput[] = []
    const loss: TokenLoss = {
      name: "top",
      teacherTop: 3,
      evaluate(input) {
        inputs.push(input)
        return { loss: 0, gradient: new Float32Array(input.tokens), topGradient: new Float32Array(3 * input.tokens) }
      },
    }
    const { logits: _, ...given } = taught(loss, { estimator: reading, iterations: 1 })
    await train(given)
    expect(batches[0]!.statistics!.teacher!.map(({ length }) => length)).toEqual([...batches[0]!.lengths])
    for (const { tokens, teacherTop } of inputs) {
      const { count, teacher, policy } = teacherTop!
      expect([count, teacher.length, policy.length]).toEqual([3, 3 * tokens, 3 * tokens])
      for (let t = 0; t < tokens; t++) expect(teacher[3 * t]).toBeGreaterThanOrEqual(teacher[3 * t + 1]!)
    }
    expect(policyIsEqual(inputs[0]!.teacherTop!.policy)).toBe(true)
  })

  it("weights tokens as configured", async () => {
    const { logits: _, ...given } = taught({ klWeight: 0 }, { iterations: 2, teacherTokenWeights: { alpha: 0.5 } })
    const weights: number[] = []
    const loss = (input: LossInput) => {
      weights.push(...input.weights!)
      return { loss: 0, gradient: new Float32Array(input.tokens) }
    }
    await train({ ...given, loss })
    expect(weights.every((weight) => weight === 1)).toBe(true) // no completion contains <action>
    const { teacher: __, ...alone } = given
    await expect(train(alone)).rejects.toThrow(/^gigpo\+teacher-token-weights needs a teacher/)
  })

  it("is required if needed, must have the same tokens, and must score rows from elsewhere", async () => {
    const { teacher: _, logits: __, ...without } = taught({ name: "distillation" })
    await expect(train(without)).rejects.toThrow(/^distillation needs a teacher: give one/)
    const teacher = { vocabularySize: 128, logProbs: 1 } as never
    await expect(train({ ...without, teacher })).rejects.toThrow(/teacher\.logProbs must be a function/)
    const segment = { start: 1, length: 1, logProbs: Float32Array.of(-1), advantage: 1 }
    const estimator: Estimator["estimate"] = ({ length }) => ({
      advantages: new Float64Array(length),
      extraSequences: [{ tokens: Int32Array.of(1, 2), segments: [segment] }],
    })
    await expect(divergences(taught({ name: "distillation" }, { estimator }))).rejects.toThrow(
      /extraSequences\[0\] without teacherLogProbs, which the loss distillation needs/,
    )
  })

  /** A table begins with equal logits. */
  const policyIsEqual = (logProbs: ArrayLike<number>) =>
    Array.from(logProbs).every((value) => Math.abs(value + Math.log(128)) < 1e-5)
})

describe("losses with further needs", () => {
  it("receive the distance of each distribution from the start (dgpo)", async () => {
    const reports = await train(setup({ loss: { name: "dgpo" }, iterations: 3 }))
    const distances = reports.map(({ metrics }) => metrics["policy/hellinger"]!)
    expect(distances[0]).toBeLessThan(0.2) // before its last update of the first iteration
    expect(distances[2]).toBeGreaterThan(distances[0]!)
    expect(reports[2]!.metrics["policy/max-weight"]).toBeGreaterThan(1)
    const { reference: _, ...unfrozen } = Object.assign(new TablePolicy())
    const policy = Object.setPrototypeOf(unfrozen, TablePolicy.prototype)
    await expect(train(setup({ policy, loss: { name: "dgpo" } }))).rejects.toThrow(/^dgpo needs a reference policy/)
  })

  it("receive which rows were sampled with a hint (act-guide)", async () => {
    const estimator: Estimator["estimate"] = ({ length }) => ({
      advantages: new Float64Array(length),
      extraSequences: [
        {
          tokens: Int32Array.of(1, 2),
          segments: [{ start: 1, length: 1, logProbs: Float32Array.of(-1), advantage: 1, offPolicy: true }],
        },
      ],
    })
    const given = { iterations: 1, stepsPerUpdate: 1000, estimator, loss: { name: "act-guide" } } as const
    const [report] = await train(setup(given))
    const share = report!.metrics["policy/off-policy-fraction"]!
    expect(share).toBeGreaterThan(0)
    // What is left of a ratio p / p_old of e / 128, a tenth of its weight, over all tokens.
    expect(report!.metrics["loss/policy"]! / share).toBeCloseTo((-0.1 * Math.E) / 128, 6)
  })
})

describe("a custom loss", () => {
  it("is called once per optimizer batch, with complete sequences", async () => {
    const inputs: LossInput[] = []
    const loss = (input: LossInput) => {
      inputs.push(input)
      return { loss: 1, gradient: new Float32Array(input.tokens), metrics: { "mine/one": 1 } }
    }
    const reports = await train(setup({ loss, iterations: 1 }))
    expect(reports[0]!.metrics).toMatchObject({ "loss/policy": 1, "mine/one": 1, "optimizer/steps": inputs.length })
    for (const { offsets, tokens, shares } of inputs) {
      expect(offsets[0]).toBe(0)
      expect(offsets.at(-1)).toBe(tokens)
      expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 9)
    }
    expect(inputs.flatMap(({ steps }) => [...steps]).sort((a, b) => a - b)).toEqual(
      Array.from({ length: inputs.reduce((sum, { steps }) => sum + steps.length, 0) }, (_, i) => i),
    )
  })

  it("clears gradients and ends the run if it throws", async () => {
    const policy = new TablePolicy()
    let calls = 0
    const loss = (input: LossInput) => {
      if (++calls === 2) throw new Error("of its own")
      return { loss: 0, gradient: new Float32Array(input.tokens).fill(1) }
    }
    await expect(train(setup({ policy, loss }))).rejects.toThrow("of its own")
    expect(policy.gradients).toEqual([])
    expect(policy.steps).toBe(1)
  })

  it("is combined with the KL term and the entropy bonus", async () => {
    const loss = { use: (input: LossInput) => ({ loss: 0, gradient: new Float32Array(input.tokens) }) }
    const still = setup()
    await train({ ...still, loss, iterations: 2 })
    expect(still.policy.logits.every((logit) => logit === 0)).toBe(true)
    const pushed = setup()
    const [, second] = await train({
      ...pushed,
      estimator: { name: "grpo" },
      loss: { entropyWeight: -1, klWeight: 0.1 },
    })
    expect(second!.metrics["policy/entropy"]).toBeLessThan(Math.log(128))
    expect(second!.metrics["loss/kl"]).toBeGreaterThan(0)
  })
})

describe("observers", () => {
  it("are called after the iteration is on disk", async () => {
    const directory = join(folder, "run")
    const told: string[] = []
    const logged = async () => (await readFile(join(directory, "metrics.jsonl"), "utf8")).trim().split("\n").length
    const observer: RunObserver = {
      start: ({ iteration, iterations }) => told.push(`start ${iteration} ${iterations}`),
      episodes: async (iteration, groups, { advantages }, steps) => {
        const all = groups.flatMap(({ episodes }) => episodes.flatMap((episode) => episode.steps))
        expect(advantages).toHaveLength(all.length)
        expect(steps.map(({ record }) => record)).toEqual(all)
        expect(
          steps.every(({ task, episode, record }) => groups[task]!.episodes[episode]!.steps.includes(record)),
        ).toBe(true)
        expect(await logged()).toBeGreaterThanOrEqual(iteration)
        told.push(`episodes ${iteration}`)
      },
      report: ({ iteration }) => told.push(`report ${iteration}`),
      end: ({ iteration, error }) => told.push(`end ${iteration} ${error}`),
    }
    await using run = await Run.open(directory, {})
    await train({ ...setup(), run, observers: [observer] })
    const each = [1, 2, 3].flatMap((iteration) => [`episodes ${iteration}`, `report ${iteration}`])
    expect(told).toEqual(["start 0 3", ...each, "end 3 undefined"])
  })

  it("receive the episodes of evaluations, before the report that has them", async () => {
    const told: string[] = []
    const observer: RunObserver = {
      evaluation: (iteration, groups) => {
        expect(groups.map(({ episodes }) => episodes.length)).toEqual([1, 1, 1, 1, 1])
        told.push(`evaluation ${iteration}`)
      },
      report: ({ iteration, evaluation }) => told.push(`report ${iteration}${evaluation ? " evaluated" : ""}`),
    }
    await train({ ...setup({ evaluation: { every: 2, tasks: 5 } }), observers: [observer] })
    const each = ["report 1", "evaluation 2", "report 2 evaluated", "evaluation 3", "report 3 evaluated"]
    expect(told).toEqual(["evaluation 0", "report 0 evaluated", ...each])
  })

  it("cause one warning and nothing else if they throw, hang or are slow", async () => {
    const long = setup({ iterations: 40, guards: { collapse: "off" } })
    const plain = await train(long)
    const warnings: string[] = []
    const throwing: RunObserver = {
      name: "clumsy",
      report: () => {
        throw new Error("It is full.")
      },
    }
    let heard = 0
    let told = 0
    let nearTheEnd = () => {}
    const late = new Promise<void>((resolve) => {
      nearTheEnd = resolve
    })
    const counting: RunObserver = { name: "counting", report: () => void (++told === 38 && nearTheEnd()) }
    const slow: RunObserver = {
      name: "slow",
      episodes: async () => {
        heard++
        await late
      },
    }
    const observed = { observers: [throwing, counting, slow], onWarning: (message: string) => warnings.push(message) }
    const reports = await train({ ...long, policy: new TablePolicy(), ...observed })
    expect(reports.map(timeless)).toEqual(plain.map(timeless))
    expect(warnings).toHaveLength(2)
    expect(warnings).toContainEqual("The observer clumsy threw in report(): It is full. The run continues.")
    expect(warnings).toContainEqual("The observer slow is too slow; some calls were skipped.")
    expect(heard).toBeLessThan(40)
  })

  it("receive the state and configuration of a run, with a warning for a nondeterministic engine", async () => {
    const starts: unknown[] = []
    const warnings: string[] = []
    const observers = [{ start: (start: unknown) => starts.push(start) }]
    const policy = Object.assign(new TablePolicy(), { deterministic: false })
    const directory = join(folder, "run")
    for (const iterations of [1, 2]) {
      await using run = await Run.open(directory, { iterations }, { resume: iterations === 2 })
      await train({ ...setup({ policy, observers, iterations }), run, onWarning: (text) => warnings.push(text) })
    }
    const config = (iterations: number) => expect.objectContaining({ gigpo: version, iterations })
    expect(starts).toEqual([
      { iteration: 0, iterations: 1, directory, config: config(1) },
      { iteration: 1, iterations: 2, directory, config: config(2) },
    ])
    expect(warnings).toEqual([expect.stringMatching(/not as without the interruption/)])
  })

  it("receive the reason why a run ended", async () => {
    const ends: unknown[] = []
    const failing = openDoors({ start: () => Promise.reject(new Error("no server")) })
    const observers = [{ end: (outcome: unknown) => ends.push(outcome) }]
    await expect(train({ ...setup({ environment: failing }), observers })).rejects.toThrow(/no server/)
    expect(ends).toEqual([{ iteration: 0, error: expect.objectContaining({ code: "ENVIRONMENT_FAILED" }) }])
  })
})
