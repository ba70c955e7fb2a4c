import { existsSync } from "node:fs"
import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Ended, notBuilt, runProgram } from "./run-program.ts"
import { makeSmallModel } from "./small-model.ts"

// A program that trains in code and is stopped by a signal: what it saves, what it exits with, and that the result is the same.

describe.skipIf(notBuilt)(`a program that trains and is stopped${notBuilt}`, () => {
  let folder: string
  let model: string
  let count = 0
  const whole: Record<string, Ended> = {}
  const place = () => join(folder, `run-${count++}`)
  const run = (directory: string, what: object) => runProgram("train-stopped", [model, directory, JSON.stringify(what)])

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-stopped-"))
    model = await makeSmallModel(folder)
    for (const work of ["train", "sft"]) {
      whole[work] = await run(place(), { work })
      expect(whole[work]).toMatchObject({ code: 0, stderr: "" })
    }
  })
  afterAll(() => rm(folder, { recursive: true }))

  const codes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const
  const moments = [
    ["train", "SIGINT", "rollout", 3],
    ["train", "SIGTERM", "rollout", 1],
    ["train", "SIGTERM", "update", 4],
    ["train", "SIGINT", "evaluation", 2],
    ["train", "SIGHUP", "between", 3],
    ["train", "SIGINT", "between", 5],
    ["sft", "SIGINT", "sft", 4],
    ["sft", "SIGTERM", "between", 2],
  ] as const

  it.each(moments)(
    "%s by %s (%s of %i) saves, ends as usual, and continues to the same end",
    async (work, signal, at, iteration) => {
      const directory = place()
      const stopped = await run(directory, { work, signal, at, iteration })
      expect(stopped).toMatchObject({ code: codes[signal], signal: null, stdout: "" })
      expect(stopped.stderr).toContain(`The run in ${directory} is being saved`)
      expect(existsSync(join(directory, "run.lock"))).toBe(false)
      const steps = await readdir(join(directory, "checkpoints"))
      if (iteration > 1) {
        expect(steps).toHaveLength(1)
        const [, unit, count] = /^(\w+)-(\d+)$/.exec(steps[0]!)!
        expect(unit).toBe(work === "train" ? "iteration" : "update")
        expect(stopped.stderr).toContain(`The state after ${unit} ${count} is saved`)
        if (work === "train") expect(Number(count)).toBeGreaterThanOrEqual(iteration - 1)
      }
      const resumed = await run(directory, { work, resume: true })
      expect(resumed).toMatchObject({ code: 0, stderr: "" })
      expect(JSON.parse(resumed.stdout)).toEqual(JSON.parse(whole[work]!.stdout))
    },
  )

  it("saves all of several trainings", async () => {
    const directory = place()
    const stopped = await run(directory, { signal: "SIGINT", at: "update", two: true })
    expect(stopped.code).toBe(130)
    for (const name of ["a", "b"]) {
      expect(await readdir(join(directory, name, "checkpoints"))).toHaveLength(1)
      const resumed = await run(join(directory, name), { resume: true })
      expect(JSON.parse(resumed.stdout)).toEqual(JSON.parse(whole.train!.stdout))
    }
  })

  it("ends at once by a second signal", async () => {
    const directory = place()
    const stopped = await run(directory, { signal: "SIGINT", again: "SIGTERM", at: "rollout", hangs: true })
    expect(stopped.code).toBe(143)
    expect(
      (await readdir(join(directory, "checkpoints"))).filter((name) => /^(iteration|update)-\d+$/.test(name)),
    ).toEqual([])
  })

  it("is left to itself where it listens to the signal, and its listeners stay", async () => {
    const ended = await run(place(), { signal: "SIGINT", at: "rollout", own: true })
    expect(ended).toMatchObject({ code: 0, stderr: "" })
    const { heard, results } = JSON.parse(ended.stdout)
    expect(heard).toEqual(["SIGINT"])
    expect(results[0]).toEqual(JSON.parse(whole.train!.stdout).results[0])
  })

  it("ends by the signal on request, and without a run", async () => {
    for (const what of [{ off: true }, { bare: true }])
      expect(await run(place(), { signal: "SIGINT", at: "rollout", ...what })).toMatchObject({
        code: null,
        signal: "SIGINT",
      })
  })

  it("has no listeners left when the training is over", () => {
    for (const { stdout } of Object.values(whole)) expect(JSON.parse(stdout).results[0].left).toBe(0)
  })
})
