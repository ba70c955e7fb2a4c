import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { notBuilt, runProgram } from "./run-program.ts"
import { makeSmallModel } from "./small-model.ts"

describe.skipIf(notBuilt)(`training whose process is killed${notBuilt}`, () => {
  let folder: string
  let model: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-killed-"))
    model = await makeSmallModel(folder)
  })
  afterAll(() => rm(folder, { recursive: true }))

  it("with a critic ends as without interruption", async () => {
    const whole = await runProgram("train-killed", [model, join(folder, "whole-ppo"), "8", "new", "0", "ppo"])
    expect(whole).toMatchObject({ code: 0, stderr: "" })
    const directory = join(folder, "with-critic")
    const killed = await runProgram("train-killed", [model, directory, "8", "new", "12", "ppo"])
    expect(killed).toMatchObject({ signal: "SIGKILL", stdout: "", stderr: "" })
    expect(await runProgram("train-killed", [model, directory, "8", "resume", "0", "ppo"])).toEqual(whole)
    expect(JSON.parse(whole.stdout).values.some((value: number) => value !== 0)).toBe(true)
  })

  it("in its twelfth iteration ends as without interruption, with concurrency 1, 4 and 32", async () => {
    const whole = await runProgram("train-killed", [model, join(folder, "whole"), "8", "new", "0"])
    expect(whole).toMatchObject({ code: 0, stderr: "" })
    for (const concurrency of ["1", "4", "32"]) {
      const directory = join(folder, `with-${concurrency}`)
      const killed = await runProgram("train-killed", [model, directory, concurrency, "new", "12"])
      expect(killed).toMatchObject({ signal: "SIGKILL", stdout: "", stderr: "" })
      const resumed = await runProgram("train-killed", [model, directory, concurrency, "resume", "0"])
      expect(resumed).toEqual(whole)
    }
  })
})
