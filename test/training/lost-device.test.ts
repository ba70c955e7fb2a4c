import { join } from "node:path"
import { expect, it } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import { Run } from "../../src/runs/run.ts"
import type { TrainOptions } from "../../src/training/options.ts"
import { train } from "../../src/training/train.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { withReplicas } from "../engine/replicas.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { openDoors, TinyModel } from "./tiny.ts"

// A policy on several devices, one of which is lost in the middle of a run.

const tiny = new TinyModel(doorsEnvironment() as Environment)
const options: TrainOptions = {
  ...{ iterations: 4, groups: 3, groupSize: 3, batchSteps: 8, seed: 3, checkpointEvery: 1 },
  ...{ rollout: { maxCompletionTokens: 4 }, loss: { klWeight: 0.1 } },
}

it("ends the run with an error that names the device; the checkpoint before is intact, and another number of devices goes on from it", async () => {
  const directory = join(tiny.folder, "run")
  let lost = false
  const model = await withReplicas(
    2,
    () => tiny.open(),
    (engine, rank) => {
      if (rank === 0) return
      for (const name of ["sample", "forwardBackward", "clearGradients", "logProbs", "read"] as const) {
        const call = engine[name].bind(engine) as (...given: unknown[]) => unknown
        const failing = () => ({
          promise: Promise.reject(new GigpoError("DEVICE_LOST", "an illegal memory access")),
          cancel() {},
        })
        Object.defineProperty(engine, name, { value: (...given: unknown[]) => (lost ? failing() : call(...given)) })
      }
    },
  )
  const losses: number[] = []
  const run = await Run.open(directory, { training: options })
  const training = async () => {
    for await (const report of train({ ...model, environment: openDoors(), ...options, run })) {
      losses.push(report.metrics["loss/total"] ?? 0)
      lost = report.iteration === 2
    }
  }
  await expect(training()).rejects.toMatchObject({ code: "DEVICE_LOST", message: expect.stringMatching(/^cpu:1: /) })
  await run[Symbol.asyncDispose]()
  expect(losses.length).toBe(2)

  const one = await tiny.open()
  await using resumed = await Run.open(directory, { training: options }, { resume: true })
  expect(resumed.iteration).toBe(2)
  const iterations: number[] = []
  for await (const { iteration } of train({ ...one, environment: openDoors(), ...options, run: resumed }))
    iterations.push(iteration)
  expect(iterations).toEqual([3, 4])
})
