import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { Sequence } from "../../../src/engine/sequence.ts"
import { clippedSurrogate } from "../../../src/loss/clipped-surrogate.ts"
import { composeLoss } from "../../../src/loss/compose-loss.ts"
import type { LossInput, LossOutput } from "../../../src/loss/token-loss.ts"
import { readOptions } from "../../../src/options/read.ts"
import type { IterationReport } from "../../../src/runs/report.ts"
import { Run } from "../../../src/runs/run.ts"
import { replayFailure, writeFailure } from "../../../src/training/guards/failure.ts"
import { trainFields } from "../../../src/training/options.ts"
import type { TrainSetup } from "../../../src/training/prepare.ts"
import { train } from "../../../src/training/train.ts"
import { Random } from "../../../src/util/random.ts"
import { characters, TablePolicy } from "../table-policy.ts"
import { openDoors, timeless } from "../tiny.ts"

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-non-finite-"))
})
afterEach(() => rm(folder, { recursive: true }))

const sound = composeLoss(clippedSurrogate({}), {})

/** The clipped surrogate, but NaN where `at` says so of the calls, counted from 0. */
function faulty(at: (call: number) => boolean) {
  let calls = 0
  return (input: LossInput): LossOutput => {
    const output = sound.evaluate(input)
    if (!at(calls++)) return output
    const gradient = output.gradient.slice()
    gradient[1] = Number.NaN
    return { ...output, gradient }
  }
}

/** Two optimizer steps an iteration. */
const options = {
  ...{ iterations: 4, groups: 2, groupSize: 2, epochs: 2, stepsPerUpdate: 1000 },
  rollout: { maxCompletionTokens: 2 },
  optimizer: { learningRate: 1 },
  guards: { collapse: "off" },
} satisfies Partial<TrainSetup>

async function trainFaulty(at: (call: number) => boolean, changes: Partial<TrainSetup> = {}) {
  const [warnings, reports]: [string[], IterationReport[]] = [[], []]
  const policy = new TablePolicy()
  const setup = { policy, tokenizer: characters, environment: openDoors(), ...options, loss: faulty(at), ...changes }
  let error: Error | undefined
  try {
    for await (const report of train({ ...setup, onWarning: (message) => warnings.push(message) })) reports.push(report)
  } catch (thrown) {
    error = thrown as Error
  }
  return { warnings, reports, error, policy }
}

describe("a non-finite loss", () => {
  it("skips one step, which is counted and reported; other steps are unchanged", async () => {
    const { warnings, reports, error, policy } = await trainFaulty((call) => call === 7)
    expect(error).toBeUndefined()
    expect(reports.map(({ metrics }) => metrics["optimizer/skipped"])).toEqual([0, 0, 0, 1])
    expect(reports.map(({ metrics }) => metrics["optimizer/steps"])).toEqual([2, 2, 2, 1])
    for (const { metrics } of reports) expect(Object.values(metrics).every(Number.isFinite)).toBe(true)
    expect(warnings).toEqual([
      expect.stringMatching(
        /^An optimizer step of iteration 4 was skipped\. The loss .* a gradient of NaN for token 1 of span 0; .* It is number 1 in a row; the run stops at 3 \(guards\.maxNonFinite\)\.$/,
      ),
    ])
    expect([policy.steps, policy.gradients]).toEqual([7, []])
    const before = await trainFaulty(() => false)
    expect(reports.slice(0, 3).map(timeless)).toEqual(before.reports.slice(0, 3).map(timeless))
  })

  it("repeatedly, but below the limit in a row, does not end the run", async () => {
    const { error, reports } = await trainFaulty((call) => call % 3 !== 0)
    expect(error).toBeUndefined()
    expect(reports).toHaveLength(4)
  })

  it("as often in a row as the limit ends the run, also across iterations", async () => {
    const { error, reports, policy } = await trainFaulty((call) => call >= 3)
    expect(error).toMatchObject({
      code: "NON_FINITE",
      message: expect.stringMatching(
        /^3 optimizer steps in a row .* the last one of iteration 3 \(guards\.maxNonFinite\)\. The loss/,
      ),
    })
    expect([reports.length, policy.steps]).toEqual([2, 3])
    expect((await trainFaulty((call) => call >= 3, { guards: { maxNonFinite: 1 } })).reports).toHaveLength(1)
  })

  it("of the native kernel is skipped as well", async () => {
    const policy = Object.assign(new TablePolicy(), {
      losses: ["clipped-surrogate"],
      forwardBackward: async () => ({ loss: Number.NaN, tokens: 1, metrics: { "policy/entropy": Number.NaN } }),
    })
    const { error, reports } = await trainFaulty(() => false, {
      policy,
      loss: {},
      guards: { maxNonFinite: 4 },
    } as object)
    expect(error).toMatchObject({ code: "NON_FINITE", message: expect.stringContaining("is NaN") })
    for (const { metrics } of reports) expect(Object.values(metrics).every(Number.isFinite)).toBe(true)
  })

  it("is distinguished from other errors of a loss, which end the run at once", async () => {
    const { error } = await trainFaulty(() => {
      throw new Error("of its own")
    })
    expect(error).toMatchObject({ code: "BAD_ARGUMENT", message: expect.stringContaining("of its own") })
  })
})

describe("a run that diverges", () => {
  const runTo = async (name: string, at: (call: number) => boolean, changes: Partial<TrainSetup> = {}) => {
    const directory = join(folder, name)
    await using run = await Run.open(directory, {})
    const result = await trainFaulty(at, { run, checkpointEvery: 1, ...changes })
    return { ...result, directory, checkpoint: run.checkpoint, saved: run.saved }
  }
  const checkpoints = async (directory: string) => (await readdir(join(directory, "checkpoints"))).sort()

  it("by its loss saves the last complete iteration, names it, and can be continued", async () => {
    const { error, directory, checkpoint } = await runTo("run", (call) => call >= 5, { checkpointEvery: 100 })
    const last = join(directory, "checkpoints", "iteration-3")
    expect(error!.message).toContain(`The last good checkpoint is ${last}, after iteration 3.`)
    expect(await checkpoints(directory)).toEqual(["iteration-3"])
    expect(checkpoint).toMatchObject({ iteration: 3, directory: last })
    await using again = await Run.open(directory, {}, { resume: true })
    const resumed = await trainFaulty(() => false, { run: again })
    expect(resumed.reports.map(({ iteration }) => iteration)).toEqual([4])
  })

  /** Weights that have diverged: from this optimizer step on there is no finite gradient. */
  const diverging = (at: number) => {
    class Diverging extends TablePolicy {
      override async optimizerStep(step: Parameters<TablePolicy["optimizerStep"]>[0]) {
        if (this.steps < at) return await super.optimizerStep(step)
        await this.clearGradients()
        return { gradientNorm: Number.NaN, skipped: true }
      }
    }
    return new Diverging()
  }

  it.each([1, 2])("by its weights returns to a checkpoint with a finite step, out of %d", async (keep) => {
    const changes = { keepCheckpoints: keep, iterations: 9, policy: diverging(6) }
    const { error, directory, checkpoint } = await runTo("run", () => false, changes)
    expect(error!.message).toMatch(
      /iteration-2, after iteration 2\. The checkpoint after iteration 3 was renamed to suspect-3\.$/,
    )
    expect(await checkpoints(directory)).toEqual(["iteration-2", "suspect-3"])
    expect(checkpoint).toMatchObject({ iteration: 2 })
    await using again = await Run.open(directory, {}, { resume: true })
    expect(again.iteration).toBe(2)
  })

  it("by weights that were never finite has no checkpoint", async () => {
    const { error, directory, checkpoint } = await runTo("run", () => false, { policy: diverging(2), iterations: 9 })
    expect(error!.message).toMatch(/There is no good checkpoint: start a new run .* suspect-1\.$/)
    expect(checkpoint).toBeUndefined()
    expect((await checkpoints(directory)).filter((name) => name.startsWith("step"))).toEqual([])
  })

  it("in its last steps is detected at its end", async () => {
    const diverged = await runTo("diverged", () => false, { policy: diverging(6), guards: { maxNonFinite: 100 } })
    expect(diverged.reports).toHaveLength(4)
    expect(diverged.error).toMatchObject({
      code: "NON_FINITE",
      message: expect.stringMatching(
        /^The gradient of the policy's .*iteration-2, after iteration 2\. .* suspect-4\.$/,
      ),
    })
    const sound = await runTo("sound", (call) => call === 7)
    expect([sound.error, sound.checkpoint!.iteration]).toEqual([undefined, 4])
  })

  it("without a checkpoint reports this", async () => {
    const { error, directory } = await runTo("run", () => true, { guards: { maxNonFinite: 1 } })
    expect(error!.message).toMatch(/There is no good checkpoint: start a new run from the model\.$/)
    expect(await checkpoints(directory)).toEqual([])
  })

  it("writes no checkpoint while steps are skipped, but afterwards", async () => {
    const saved: number[] = []
    await using run = await Run.open(join(folder, "run"), {})
    const policy = new TablePolicy()
    const loss = faulty((call) => call === 3)
    const setup = { policy, tokenizer: characters, environment: openDoors(), ...options, loss, run, checkpointEvery: 2 }
    for await (const _ of train({ ...setup, onWarning: () => {} })) saved.push(run.iteration)
    expect(saved).toEqual([0, 0, 3, 4])
  })

  it("does not save finite weights with non-finite results", async () => {
    class Broken extends TablePolicy {
      override async optimizerStep(step: Parameters<TablePolicy["optimizerStep"]>[0]) {
        const report = await super.optimizerStep(step)
        // Every token but one then has a probability of 0.
        if (this.steps === 4)
          this.logits = this.logits.map((_, index) => (index % this.vocabularySize === 0 ? 1e308 : -1e308))
        return report
      }
    }
    const { error, directory } = await runTo("run", () => false, { policy: new Broken() })
    expect(error).toMatchObject({
      code: "NON_FINITE",
      message: expect.stringMatching(
        /^The policy's log-probabilities are not finite.*iteration-1, after iteration 1\.$/,
      ),
    })
    expect(await checkpoints(directory)).toEqual(["iteration-1"])
  })

  it("by non-finite results of the sampler names the checkpoint, too, and keeps valid weights", async () => {
    const estimator = (
      batch: { readonly length: number },
      { progress }: { readonly progress: { readonly iteration: number } },
    ) => ({
      advantages: new Float64Array(batch.length).fill(progress.iteration === 2 ? Number.NaN : 0),
    })
    const { error, directory } = await runTo("run", () => false, { estimator, checkpointEvery: 100 })
    expect(error).toMatchObject({
      code: "NON_FINITE",
      message: expect.stringMatching(/iteration-2, after iteration 2\.$/),
    })
    expect(await checkpoints(directory)).toEqual(["iteration-2"])
  })

  it("reports the same to its observers", async () => {
    const ends: unknown[] = []
    const { error } = await runTo("run", () => true, { observers: [{ end: (outcome) => ends.push(outcome) }] })
    expect(ends).toEqual([{ iteration: 1, error }])
  })
})

describe("the batch that failed", () => {
  const failing = async () => {
    const directory = join(folder, "run")
    await using run = await Run.open(directory, {})
    return { ...(await trainFaulty((call) => call >= 3, { run, seed: 7 })), directory: join(directory, "failure-3") }
  }

  it("is written with everything that the step used, and named", async () => {
    const { error, directory } = await failing()
    expect(error!.message).toContain(`The batch was saved to ${directory} for replayFailure().`)
    const batch = JSON.parse(await readFile(join(directory, "batch.json"), "utf8"))
    expect(batch).toMatchObject({
      version: 1,
      error: expect.stringContaining("NaN"),
      loss: { name: expect.any(String), options: { klWeight: 0 } },
      seed: 7,
      how: {
        progress: { iteration: 2, iterations: 4 },
        temperature: 1,
        unit: "completion",
        key: [expect.any(Number), expect.any(Number)],
      },
      adamw: { learningRate: 1 },
      weights: { steps: 3 },
    })
    for (const { tokens, segments } of batch.rows) {
      expect(tokens).toMatchObject({ type: "Int32Array", values: expect.any(Array) })
      for (const segment of segments)
        expect(segment).toMatchObject({
          ...{ start: expect.any(Number), length: expect.any(Number), advantage: expect.any(Number) },
          ...{ logProbs: { type: "Float32Array" }, task: expect.any(Number), step: expect.any(Number) },
        })
    }
  })

  it("reproduces the failure from the same weights", async () => {
    const { policy, directory } = await failing()
    const other = new TablePolicy()
    const again = await replayFailure(
      directory,
      other,
      faulty(() => true),
    )
    expect(again).toMatchObject({ step: { skipped: true }, error: { code: "NON_FINITE" } })
    expect(other.logits).toEqual(policy.logits)
    const repeated = await replayFailure(directory, other, sound)
    expect(repeated).toMatchObject({ report: { loss: expect.any(Number) }, step: { skipped: false } })
    expect(repeated.error).toBeUndefined()
    expect(other.steps).toBe(4)
  })

  it("preserves every bit, and numbers that JSON lacks", async () => {
    const policy = new TablePolicy()
    const odd = Float32Array.of(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, 0.1, 1e-45)
    const tokens = Int32Array.of(1, 2, 3, 4, 5, 6, 7)
    const segment = { start: 1, length: 6, logProbs: odd, weights: odd, advantage: Number.NaN, referenceLogProbs: odd }
    const seen: (readonly Sequence[])[] = []
    const resolved = readOptions("train", { loss: { clipDual: Number.POSITIVE_INFINITY } }, trainFields)
    const how = { progress: { iteration: 4, iterations: 9 }, random: new Random(3).derive("loss", 2), temperature: 0.5 }
    const adamw = { learningRate: 1, maxGradientNorm: Number.POSITIVE_INFINITY }
    const failure = { policy, loss: sound, options: resolved, rows: [{ tokens, segments: [segment] }], how, adamw }
    const path = await writeFailure(folder, { ...failure, error: new Error("x") })
    expect(path).toBe(join(folder, "failure-5"))
    const spy = Object.assign(new TablePolicy(), {
      logProbs: async (rows: readonly Sequence[]) => {
        seen.push(rows)
        return { logProbs: new Float32Array(6 * rows.length).fill(-1) }
      },
    })
    await replayFailure(path, spy, sound)
    expect(seen).toEqual([[{ tokens, segments: [segment] }]])
    expect(Object.is(seen[0]![0]!.segments[0]!.logProbs![3], -0)).toBe(true)
    const batch = await readFile(join(path, "batch.json"), "utf8")
    expect(JSON.parse(batch)).toMatchObject({ how: { key: how.random.key }, adamw: { maxGradientNorm: "Infinity" } })
  })

  it("is written without non-finite weights, and for engines that cannot be saved", async () => {
    const { directory } = await failing()
    const resolved = readOptions("train", {}, trainFields)
    const base = {
      loss: sound,
      options: resolved,
      rows: [],
      how: { progress: { iteration: 0, iterations: 1 }, random: new Random(1) },
    }
    const { GigpoError } = await import("../../../src/util/errors.ts")
    const diverged = Object.assign(new TablePolicy(), {
      store: { checkpoint: () => Promise.reject(new GigpoError("NON_FINITE", "w")) },
    })
    const unsaved = Object.assign(new TablePolicy(), { store: undefined })
    for (const policy of [diverged, unsaved]) {
      const path = await writeFailure(folder, {
        ...base,
        policy: policy as never,
        adamw: { learningRate: 1 },
        error: new Error(),
      })
      expect(await readdir(path)).toEqual(["batch.json", "gigpo.json"])
      await replayFailure(path, new TablePolicy(), sound)
    }
    expect(await readdir(directory)).toEqual(["batch.json", "gigpo.json", "weights"])
  })

  it.each([
    ["no JSON", "{", /it is not JSON/],
    ["another version", '{"version": 2}', /does not support its version/],
    ["nothing", "null", /does not support its version/],
    ["no rows", '{"version": 1, "how": {}, "adamw": {}}', /must have the keys how, adamw and rows/],
  ])("that is %s is rejected", async (_, text, message) => {
    await writeFile(join(folder, "batch.json"), text)
    await expect(replayFailure(folder, new TablePolicy(), sound)).rejects.toMatchObject({
      code: "RUN_CORRUPT",
      message: expect.stringMatching(message),
    })
  })

  it("gives a warning if it cannot be written, and the run ends with its original error", async () => {
    const directory = join(folder, "run")
    await using run = await Run.open(directory, {})
    const policy = new TablePolicy()
    Object.assign(policy.store, { checkpoint: () => Promise.reject(new Error("the disk is full")) })
    const { error, warnings } = await trainFaulty(() => true, { run, policy, guards: { maxNonFinite: 1 } })
    expect(error).toMatchObject({ code: "NON_FINITE" })
    expect(warnings.at(-1)).toBe("Could not save the failed batch: the disk is full")
    expect((await readdir(directory)).filter((name) => name.startsWith("failure"))).toEqual([])
  })
})
