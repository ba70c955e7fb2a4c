import { readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { Run, type RunMode } from "../../src/runs/run.ts"
import { sft } from "../../src/sft/sft.ts"
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { evaluate } from "../../src/training/evaluate.ts"
import { train } from "../../src/training/train.ts"
import { all, openReadableDoors, TinyModel } from "../training/tiny.ts"

const environment = openReadableDoors()
const model = new TinyModel(environment)
const [evening, morning] = [new Date(2026, 10, 25, 23, 59), new Date(2026, 10, 26, 0, 1)]

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: evening })
  const file = join(model.directory, "tokenizer_config.json")
  const config = JSON.parse(await readFile(file, "utf8"))
  config.chat_template = `{{ strftime_now('%d %b %Y') }}\n${config.chat_template.replace(/^.*\n(?={%)/, "")}`
  await writeFile(file, JSON.stringify(config))
  await rm(join(model.directory, "gigpo.json"), { force: true }) // changed on purpose
})
afterEach(() => void vi.useRealTimers())

let runs = 0
async function trained(iterations: number, directory: string, mode: RunMode = {}, now?: string): Promise<string[]> {
  const { policy, tokenizer: _ } = await model.open()
  await using tokenizer = await Tokenizer.open(model.directory, { chat: { now } })
  const { sample } = policy
  const dates = new Set<string>()
  policy.sample = (request) => {
    dates.add(tokenizer.decode(request.prompt).split("\n")[0]!)
    return sample.call(policy, request)
  }
  await using run = await Run.open(directory, { groups: 1 }, mode)
  const options = { iterations, groups: 1, groupSize: 2, checkpointEvery: 1, rollout: { maxCompletionTokens: 2 } }
  await all(train({ policy, tokenizer, environment, run, evaluation: { every: 0 }, ...options }))
  return [...dates]
}
const folder = () => join(model.folder, `run-${++runs}`)

describe("the date in prompts", () => {
  it("stays that of the run's beginning when it is resumed after midnight", async () => {
    const directory = folder()
    expect(await trained(1, directory)).toEqual(["25 Nov 2026"])
    vi.setSystemTime(morning)
    expect(await trained(2, directory, { resume: true })).toEqual(["25 Nov 2026"])
    expect(await trained(1, folder())).toEqual(["26 Nov 2026"])
  })

  it("is kept by a fork, unless another is set", async () => {
    const directory = folder()
    await trained(1, directory, {}, "2020-01-02")
    expect(await trained(2, folder(), { fork: directory })).toEqual(["02 Jan 2020"])
    expect(await trained(2, folder(), { fork: directory }, "2021-01-02")).toEqual(["02 Jan 2021"])
  })

  it("is rejected if a resumed run has another", async () => {
    const directory = folder()
    await trained(1, directory, {}, "2020-01-02")
    await expect(trained(2, directory, { resume: true }, "2021-01-02")).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: expect.stringMatching(/started with the date 2020-01-02 .* not 2021-01-02/),
    })
    expect(await trained(2, directory, { resume: true }, "2020-01-02")).toEqual(["02 Jan 2020"])
  })

  it("does not change within an evaluation or a cloning", async () => {
    for (const work of ["evaluate", "sft"] as const) {
      const { policy, tokenizer } = await model.open()
      const setup = { policy, tokenizer, environment }
      if (work === "evaluate") await evaluate({ ...setup, tasks: 1, rollout: { maxCompletionTokens: 2 } })
      else await all(sft({ ...setup, tasks: 2, epochs: 1 }))
      expect(tokenizer.date).toBe("2026-11-25T23:59:00")
    }
  })
})
