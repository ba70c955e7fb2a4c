import { mkdtemp } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { Trainable } from "../../src/engine/engine.ts"
import type { NativePolicy } from "../../src/engine/native/native-policy.ts"
import type { Departure } from "../../src/engine-server/departures.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { openSafetensors } from "../../src/model-files/safetensors.ts"
import type { IterationReport } from "../../src/runs/report.ts"
import { Run } from "../../src/runs/run.ts"
import type { TrainOptions } from "../../src/training/options.ts"
import { train } from "../../src/training/train.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { openDoors, TinyModel } from "../training/tiny.ts"
import { departures } from "./departures.ts"
import { lora, Servings } from "./serving.ts"

const doors = new TinyModel(doorsEnvironment() as Environment)
const servings = new Servings()

/** Ten optimizer steps. */
const script: TrainOptions = {
  iterations: 5,
  groups: 4,
  groupSize: 4,
  updatesPerEpoch: 2,
  rollout: { maxCompletionTokens: 4 },
  optimizer: { learningRate: 1e-2, maxGradientNorm: Number.POSITIVE_INFINITY },
  loss: { clipDual: Number.POSITIVE_INFINITY },
}

/** @param until after which iteration it is stopped */
async function run(policy: Trainable, options: TrainOptions = {}, into?: Run, until = Number.POSITIVE_INFINITY) {
  const { tokenizer } = await doors.open()
  const setup = { policy, tokenizer, environment: openDoors(), ...script, ...options, ...(into && { run: into }) }
  const reports: IterationReport[] = []
  for await (const report of train(setup)) {
    reports.push(report)
    if (report.iteration >= until) break
  }
  return reports
}

/** All of its weights. */
async function weightsOf(policy: NativePolicy): Promise<Float32Array> {
  const directory = await mkdtemp(join(doors.folder, "weights-"))
  await policy.save(join(directory, "model"))
  const files = await openSafetensors(join(directory, "model"))
  try {
    const parts: number[] = []
    for (const name of files.names)
      for await (const chunk of files.read(name)) parts.push(...new Float32Array(new Uint8Array(chunk).buffer))
    return Float32Array.from(parts)
  } finally {
    await files.close()
  }
}

const farthest = (a: Float32Array, b: Float32Array) =>
  a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0)

describe("the same script", () => {
  it("gives the same weights here and on an engine elsewhere, all of them trained", async () => {
    const { policy } = await doors.open()
    const before = await weightsOf(policy)
    const reports = await run(policy)
    expect(reports.map(({ metrics }) => metrics["optimizer/steps"]).reduce((a, b) => a! + b!, 0)).toBe(10)
    const local = await weightsOf(policy)
    expect(farthest(before, local)).toBeGreaterThan(1e-3)
    const serving = await servings.serve(doors.directory, { models: 1 })
    const engine = await serving.connect({ rank: 0 })
    const told = await run(engine)
    expect(farthest(local, await weightsOf(serving.policies.at(-1)!))).toBeLessThan(1e-5)
    for (const name of ["episode/success", "completion/tokens", "loss/policy", "policy/ratio", "policy/clip-fraction"])
      expect(told.map(({ metrics }) => metrics[name])).toEqual(
        reports.map(({ metrics }) => (metrics[name] === undefined ? undefined : expect.closeTo(metrics[name]!, 4))),
      )
  })

  it("with an adapter, and gradients that are scaled down", async () => {
    const options = { optimizer: { learningRate: 1e-2, maxGradientNorm: 0.1 } }
    const { policy } = await doors.open(undefined, { lora: { ...lora, rank: 4, seed: 3 } })
    await run(policy, options)
    const serving = await servings.serve(doors.directory, { models: 1 })
    await run(await serving.connect({ rank: 4, seed: 3 }), options)
    expect(farthest(await weightsOf(policy), await weightsOf(serving.policies.at(-1)!))).toBeLessThan(1e-5)
  })

  it("with a KL to the reference, a dual clip and a loss of one's own, by log-probabilities alone", async () => {
    const options: TrainOptions = {
      loss: { clipDual: 3, klWeight: 0.1, aggregation: "sequence-mean-token-mean" },
      optimizer: { learningRate: 3e-3 },
    }
    const { policy } = await doors.open()
    await run(policy, options)
    const serving = await servings.serve(doors.directory, { models: 1 })
    await run(await serving.connect({ rank: 0 }), options)
    expect(farthest(await weightsOf(policy), await weightsOf(serving.policies.at(-1)!))).toBeLessThan(1e-5)
  })

  it("continues elsewhere where it was stopped, with weights and moments", async () => {
    const serving = await servings.serve(doors.directory)
    const engine = await serving.connect({ rank: 4, seed: 3 })
    await run(engine)
    const whole = await weightsOf(serving.policies.at(-1)!)
    const directory = join(await mkdtemp(join(doors.folder, "run-")), "run")
    const part = async (iterations: number, resume: boolean) => {
      await using one = await Run.open(directory, { script: "the same" }, { resume })
      // Another client, which knows of the model on the server what the run's folder says.
      const again = await serving.connect({ rank: 4, seed: 3 })
      await run(again, { iterations: script.iterations!, checkpointEvery: 1 }, one, iterations)
      return again
    }
    await part(3, false)
    await part(5, true)
    expect(farthest(whole, await weightsOf(serving.policies.at(-1)!))).toBeLessThan(1e-6)
  })

  describe("on a server that does otherwise:", () => {
    /** What the run is rejected with. */
    const refused: Partial<Record<Departure, RegExp>> = {}
    /** What goes with it on the servers that it was seen in. */
    const together: Partial<Record<Departure, readonly Departure[]>> = {
      "negative-weights": ["mean-of-means"],
      "not-ours": [],
    }
    for (const departure of Object.keys(departures) as Departure[])
      it(departure, async () => {
        const options = { rank: 4, seed: 3 }
        const { policy } = await doors.open(undefined, { lora: { ...lora, ...options } })
        const serving = await servings.serve(doors.directory, {
          departures: [departure, ...(together[departure] ?? [])],
        })
        const engine = await serving.connect(options)
        const reason = refused[departure]
        if (reason) {
          await expect(run(engine)).rejects.toThrow(reason)
          return
        }
        await run(engine)
        const there = await weightsOf(serving.policies.at(-1)!)
        if (departure === "not-ours") {
          // Other seeds draw other samples; what becomes of the same rows is tried below.
          expect(there.every(Number.isFinite)).toBe(true)
          return
        }
        await run(policy)
        expect(farthest(await weightsOf(policy), there)).toBeLessThan(1e-5)
      })
  })
})
