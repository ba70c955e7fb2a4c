import { mkdtemp, readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { beforeAll, expect, it } from "vitest"
import { stepSequence } from "../../src/engine/sequence.ts"
import type { Environment } from "../../src/environment/environment.ts"
import type { RolloutHooks } from "../../src/rollout/hooks.ts"
import type { IterationReport } from "../../src/runs/report.ts"
import { Run } from "../../src/runs/run.ts"
import type { TrainOptions } from "../../src/training/options.ts"
import { train } from "../../src/training/train.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { openDoors, TinyModel, timeless } from "../training/tiny.ts"
import { type Serving, Servings } from "./serving.ts"

// One-step-off policy on a remote engine: snapshots are weights that the server saves for sampling.

const doors = new TinyModel(doorsEnvironment() as Environment)
const servings = new Servings()
const script: TrainOptions = {
  ...{
    iterations: 4,
    groups: 3,
    groupSize: 4,
    updatesPerEpoch: 2,
    checkpointEvery: 1,
    keepCheckpoints: 1,
    maxStaleness: 1,
  },
  rollout: { maxCompletionTokens: 4 },
  optimizer: { learningRate: 1e-2, maxGradientNorm: Number.POSITIVE_INFINITY },
  loss: { clipDual: Number.POSITIVE_INFINITY },
}
/** Differences of log-probabilities that a hook asked the policy for from those of sampling. */
const apart: number[] = []
const hooks: RolloutHooks = {
  async score({ episodes }, { policy }) {
    const { prompt, completion, logProbs } = episodes[0]!.steps[0]!
    const asked = await policy!.logProbs!([stepSequence(prompt, completion)])
    apart.push(...asked.logProbs.map((one, at) => Math.abs(one - logProbs[at]!)))
    return episodes
  },
}
const folder = () => mkdtemp(join(doors.folder, "pipeline-"))

async function run(serving: Serving, directory: string, resume = false): Promise<IterationReport[]> {
  await using into = await Run.open(directory, {}, { resume })
  const policy = await serving.connect({ rank: 4, seed: 3, requestTimeout: 2, resultTimeout: 20 })
  const { tokenizer } = await doors.open()
  const reports: IterationReport[] = []
  for await (const report of train({ policy, tokenizer, environment: openDoors(), ...script, run: into, hooks }))
    reports.push(timeless(report))
  return reports
}

/** Names of the weights for sampling that a server has. */
async function saved(checkpoints: string): Promise<string[]> {
  const files = await readdir(checkpoints, { recursive: true })
  return files.flatMap((file) => /sampler_weights\/([^/]+)\/about\.json$/.exec(file)?.[1] ?? [])
}

let whole: IterationReport[]
let asked: readonly string[]
beforeAll(async () => {
  const checkpoints = await folder()
  const serving = await servings.serve(doors.directory, { checkpoints })
  const directory = join(await folder(), "run")
  whole = await run(serving, directory)
  asked = [...serving.asked]
  const manifest = await readFile(join(directory, "checkpoints/iteration-4/manifest.json"), "utf8")
  expect(JSON.parse(manifest)).not.toHaveProperty("sampler")
})

it("the rollout of each iteration but the first is one iteration old", () => {
  expect(whole.map(({ metrics }) => metrics["rollout/staleness"])).toEqual([0, 1, 1, 1])
  expect(Math.abs(whole[0]!.metrics["mismatch/kl"]!)).toBeLessThan(1e-4)
  expect(Math.abs(whole[1]!.metrics["mismatch/kl"]!)).toBeGreaterThan(1e-4)
})

it("a hook gets log-probabilities from the weights that play", () => {
  expect(apart.length).toBeGreaterThan(0)
  expect(Math.max(...apart)).toBeLessThan(1e-4)
})

it.each(["/optim_step", "/asample", "/save_weights_for_sampler"])(
  "a run whose server is killed at %s continues to the same end at another server of the folder",
  async (path) => {
    const [checkpoints, directory] = [await folder(), join(await folder(), "run")]
    const late = asked.filter((one) => one === path).length - 2
    const first = await servings.serve(doors.directory, { checkpoints }, (one, nth) =>
      one === path && nth >= late ? { kind: "killed" } : undefined,
    )
    await expect(run(first, directory)).rejects.toMatchObject({ code: expect.stringMatching(/^ENGINE_/) })
    await first.kill()
    const rest = await run(await servings.serve(doors.directory, { checkpoints }), directory, true)
    expect(rest.length).toBeGreaterThan(0)
    expect(rest.length).toBeLessThan(whole.length)
    const plain = ({ resumed: _, ...report }: IterationReport & { resumed?: boolean }) => report
    expect(rest.map(plain)).toEqual(whole.slice(-rest.length))
  },
)

it("weights for sampling stay on the server only where a checkpoint refers to them", async () => {
  const [checkpoints, directory] = [await folder(), join(await folder(), "run")]
  const serving = await servings.serve(doors.directory, { checkpoints })
  await run(serving, directory)
  const probed = 1 // of the checks before the training
  const referred = 3 // checkpoints of iterations 1 to 3: the last one has no next rollout
  expect((await saved(checkpoints)).length).toBeLessThanOrEqual(referred + probed)
  expect(serving.asked.filter((path) => /^\/training_runs\/.*sampler_weights/.test(path))).toHaveLength(1)
})
