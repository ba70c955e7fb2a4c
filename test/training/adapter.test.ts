import { appendFile, cp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { Environment } from "../../src/environment/environment.ts"
import { Run } from "../../src/runs/run.ts"
import { evaluate } from "../../src/training/evaluate.ts"
import type { TrainOptions } from "../../src/training/options.ts"
import { train } from "../../src/training/train.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { openDoors, TinyModel, timeless } from "./tiny.ts"

// Runs that train an adapter: their checkpoints hold the adapter alone.

const tiny = new TinyModel(doorsEnvironment() as Environment)
const lora = { rank: 3, alpha: 5 }

const options: TrainOptions = {
  iterations: 4,
  groups: 3,
  groupSize: 3,
  stepsPerUpdate: 8,
  seed: 3,
  rollout: { maxCompletionTokens: 4 },
  loss: { klWeight: 0.1 },
  optimizer: { learningRate: 2e-2, warmup: 1, schedule: "cosine" },
  checkpointEvery: 1,
}

let folders = 0
const newFolder = () => join(tiny.folder, `adapter-run-${folders++}`)

interface Part {
  readonly directory: string
  readonly base?: string
  readonly resume?: boolean
  readonly leaveAfter?: number
}

/** One process's part of a run. */
async function part({ directory, base, resume = false, leaveAfter }: Part) {
  const model = await tiny.open(base, { lora, reference: true })
  await using run = await Run.open(directory, { training: options }, { resume })
  const metrics = []
  for await (const report of train({ ...model, environment: openDoors(), ...options, run })) {
    metrics.push(timeless(report))
    if (report.iteration === leaveAfter) break
  }
  if (run.iteration === options.iterations)
    await run.saveModel({ store: model.policy.store, files: model.tokenizer.files })
  return { ...model, metrics }
}

const bytesOf = (directory: string, file: string) => readFile(join(directory, file), "base64")

describe("a run that trains an adapter", () => {
  it("and is stopped and resumed ends with the same bytes as without interruption", async () => {
    const [whole, stopped] = [newFolder(), newFolder()]
    const { metrics } = await part({ directory: whole })
    expect(metrics.at(-1)!.metrics["loss/kl"]).toBeGreaterThan(0)
    const first = await part({ directory: stopped, leaveAfter: 2 })
    const second = await part({ directory: stopped, resume: true })
    expect([...first.metrics, ...second.metrics]).toEqual(metrics)
    for (const file of [
      "checkpoints/iteration-4/adapter_model.safetensors",
      "checkpoints/iteration-4/optimizer/model.safetensors",
      "model/model.safetensors",
    ])
      expect(await bytesOf(stopped, file), file).toBe(await bytesOf(whole, file))
  })

  it("gives the same evaluation from its checkpoint and from the merged model", async () => {
    const directory = newFolder()
    await part({ directory })
    const checkpoint = join(directory, "checkpoints", "iteration-4")
    const files = await readdir(checkpoint)
    expect(files).toEqual(
      expect.arrayContaining(["adapter_config.json", "adapter_model.safetensors", "tokenizer.json"]),
    )
    expect(files).not.toContain("model.safetensors")
    const evaluated = []
    for (const folder of [checkpoint, join(directory, "model")]) {
      const model = await tiny.open(folder, { training: false })
      evaluated.push(await evaluate({ ...model, environment: openDoors(), tasks: 20, rollout: options.rollout! }))
    }
    expect(evaluated[1]).toEqual(evaluated[0])
  })

  it("is not resumed with a changed base model", async () => {
    const base = newFolder()
    await cp(tiny.directory, base, { recursive: true })
    const directory = newFolder()
    await part({ directory, base, leaveAfter: 1 })
    await rm(join(base, "gigpo.json")) // or opening it would be rejected
    const path = join(base, "model.safetensors")
    const bytes = await readFile(path)
    bytes[bytes.length - 2]! ^= 1
    await writeFile(path, bytes)
    await expect(part({ directory, base, resume: true })).rejects.toMatchObject({
      code: "BAD_MODEL",
      message: expect.stringMatching(
        /does not have the weights that the run in .* started with .* adapter was trained on them/,
      ),
    })
  })

  it("falls back to an earlier checkpoint if an adapter is damaged", async () => {
    const directory = newFolder()
    await part({ directory, leaveAfter: 2 })
    await appendFile(join(directory, "checkpoints/iteration-2/adapter_model.safetensors"), "x")
    const warnings: string[] = []
    await using run = await Run.open(
      directory,
      { training: options },
      { resume: true, onWarning: (message) => warnings.push(message) },
    )
    expect(run.iteration).toBe(1)
    expect(warnings.join()).toMatch(/adapter_model.safetensors was changed/)
  })
})
