import { it } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { withReplicas } from "../engine/replicas.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { checkLostRun } from "./lost-run.ts"
import { TinyModel } from "./tiny.ts"

const tiny = new TinyModel(doorsEnvironment() as Environment)

it("a run that loses one of several devices ends with an error that names it, and its checkpoint is intact", async () => {
  let lost = false
  const several = await withReplicas(
    2,
    () => tiny.open(tiny.directory, { threads: 1 }),
    (engine, rank) => {
      if (rank === 0) return
      for (const name of ["sample", "forwardBackward", "clearGradients", "logProbs", "read"] as const) {
        const call = engine[name].bind(engine) as (...given: unknown[]) => unknown
        const error = () => Promise.reject(new GigpoError("DEVICE_LOST", "an illegal memory access"))
        const value = (...given: unknown[]) => (lost ? { promise: error(), cancel() {} } : call(...given))
        Object.defineProperty(engine, name, { value })
      }
    },
  )
  const lose = () => {
    lost = true
  }
  await checkLostRun(tiny, several, lose, "cpu:1", () => tiny.open(tiny.directory, { threads: 1 }))
})
