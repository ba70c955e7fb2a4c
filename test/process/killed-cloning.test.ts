import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { notBuilt, runProgram } from "./run-program.ts"
import { makeSmallModel } from "./small-model.ts"

describe.skipIf(notBuilt)(`cloning whose process is killed${notBuilt}`, () => {
  let folder: string
  let model: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-killed-"))
    model = await makeSmallModel(folder)
  })
  afterAll(() => rm(folder, { recursive: true }))

  it.each(["weights", "adapter"])(
    "ends as without interruption, with the same %s, moments and reports",
    async (trained) => {
      const whole = await runProgram("clone-killed", [model, join(folder, `whole-${trained}`), "new", "0", trained])
      expect(whole).toMatchObject({ code: 0, stderr: "" })
      const { step, metrics } = JSON.parse(whole.stdout)
      expect(metrics.trim().split("\n")).toHaveLength(4)
      const directory = join(folder, `killed-${trained}`)
      // In the middle of the third epoch, and again in the last.
      for (const [index, part] of [2.5, 3.5].entries()) {
        const mode = index === 0 ? "new" : "resume"
        const killAt = String(Math.round((step * part) / 4))
        const killed = await runProgram("clone-killed", [model, directory, mode, killAt, trained])
        expect(killed).toMatchObject({ signal: "SIGKILL", stdout: "", stderr: "" })
      }
      expect(await runProgram("clone-killed", [model, directory, "resume", "0", trained])).toEqual(whole)
    },
  )
})
