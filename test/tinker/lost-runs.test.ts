import { mkdtemp } from "node:fs/promises"
import { join } from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import type { TrainOptions } from "../../src/training/options.ts"
import { Run } from "../../src/training/run.ts"
import { train } from "../../src/training/train.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { openDoors, TinyModel } from "../training/tiny.ts"
import { type Fault, type Serving, Servings } from "./serving.ts"

// A run whose server fails it in the middle: it stops, and goes on at another server of the same folder to the end that it would have had.

const doors = new TinyModel(doorsEnvironment() as Environment)
const servings = new Servings()
const script: TrainOptions = {
  ...{ iterations: 4, groups: 3, groupSize: 4, updates: 2, checkpointEvery: 1 },
  rollout: { maxReplyTokens: 4 },
  optimizer: { learningRate: 1e-2, maxGradientNorm: Number.POSITIVE_INFINITY },
  loss: { clipDual: Number.POSITIVE_INFINITY },
}
const folder = () => mkdtemp(join(doors.folder, "lost-"))

/** The reports of a run, but for its times. */
async function run(serving: Serving, directory: string, resume: boolean) {
  await using into = await Run.open(directory, { script: "the same" }, { resume })
  const policy = await serving.connect({ rank: 4, seed: 3, patience: 0.2, deadline: 20 })
  const { tokenizer } = await doors.open()
  const reports: Record<string, number | undefined>[] = []
  for await (const { metrics } of train({ policy, tokenizer, environment: openDoors(), ...script, run: into }))
    reports.push(Object.fromEntries(Object.entries(metrics).filter(([name]) => !name.startsWith("time/"))))
  return reports
}

let whole: Awaited<ReturnType<typeof run>>
let asked: readonly string[]
beforeAll(async () => {
  const serving = await servings.serve(doors.directory)
  whole = await run(serving, join(await folder(), "run"), false)
  asked = [...serving.asked]
})

async function failed(path: string, fault: Fault, lasting: boolean): Promise<void> {
  const checkpoints = await folder()
  const directory = join(await folder(), "run")
  const times = asked.filter((one) => one === path).length
  expect(times, path).toBeGreaterThan(3)
  const late = times - 3 // those before the first iteration try the server
  const first = await servings.serve(doors.directory, { checkpoints }, (one, nth) =>
    one === path && (lasting ? nth >= late : nth === late) ? fault : undefined,
  )
  await expect(run(first, directory, false)).rejects.toMatchObject({
    name: "GigpoError",
    code: expect.stringMatching(/^ENGINE_/),
  })
  await first.kill()
  const second = await servings.serve(doors.directory, { checkpoints })
  const rest = await run(second, directory, true)
  expect(rest.length).toBeGreaterThan(0)
  expect(rest.length).toBeLessThan(whole.length)
  expect(rest).toEqual(
    whole
      .slice(-rest.length)
      .map((metrics) =>
        Object.fromEntries(Object.entries(metrics).map(([name, value]) => [name, value && expect.closeTo(value, 5)])),
      ),
  )
}

describe("a run that loses its server goes on to the same end", () => {
  const expired: Fault = { kind: "status", status: 401, body: { detail: "the token has expired" } }
  const paths = ["/forward_backward", "/optim_step", "/asample", "/save_weights", "/save_weights_for_sampler"]
  it.each(paths)("which is killed when it is asked for %s", async (path) => {
    await failed(path, { kind: "killed" }, true)
  })
  it("which is killed when it is asked for a result", async () => {
    await failed("/retrieve_future", { kind: "killed" }, true)
  })
  it.each([...paths, "/retrieve_future"])("whose key has expired by %s", async (path) => {
    await failed(path, expired, true)
  })
  it("whose results are garbage, or longer than any result", async () => {
    await failed("/retrieve_future", { kind: "garbage" }, true)
    await failed("/retrieve_future", { kind: "endless" }, false)
  })
})
