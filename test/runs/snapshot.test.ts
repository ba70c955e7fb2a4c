import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { Batch, Credit } from "../../src/credit/estimator.ts"
import { gigpo } from "../../src/credit/gigpo.ts"
import { Run } from "../../src/runs/run.ts"
import { train } from "../../src/training/train.ts"
import type { StateDict } from "../../src/util/state.ts"
import { Memory } from "../training/fake-policy.ts"
import { characters, TablePolicy } from "../training/table-policy.ts"
import { openDoors } from "../training/tiny.ts"

// What estimator, loss, hooks and tasks remember belongs to the same checkpoint as the weights.

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-memory-"))
})
afterEach(() => rm(folder, { recursive: true }))

const setup = () => ({
  policy: new TablePolicy(),
  tokenizer: characters,
  environment: openDoors(),
  iterations: 4,
  groups: 2,
  groupSize: 2,
  rollout: { maxCompletionTokens: 2 },
})

/** An estimator that counts its calls, in JSON and in an array that it changes in place. */
function counting() {
  const memory = Object.assign(new Memory("counting"), { arrays: { calls: Float64Array.of(0) } })
  const estimate = ({ length }: Batch): Credit => {
    memory.arrays.calls[0] = ++memory.count
    return { advantages: new Float64Array(length).fill(memory.count) }
  }
  return Object.assign(memory, { estimate })
}

describe("a memory", () => {
  it("is that of the last complete iteration, whatever its owner did since", async () => {
    const directory = join(folder, "run")
    const first = counting()
    {
      await using run = await Run.open(directory, {})
      // The third iteration has its credit, and then its loss fails.
      const loss = {
        use: (input: { readonly tokens: number }) => {
          if (first.count === 3) throw new Error("of its own")
          return { loss: 0, gradient: new Float32Array(input.tokens) }
        },
      }
      await expect(train({ ...setup(), estimator: first, loss, run })).rejects.toThrow(/of its own/)
      expect(first.count).toBe(3)
      expect(run.iteration).toBe(2)
    }
    const second = counting()
    await using run = await Run.open(directory, {}, { resume: true })
    const loss = {
      use: (input: { readonly tokens: number }) => ({ loss: 0, gradient: new Float32Array(input.tokens) }),
    }
    for await (const { iteration } of train({ ...setup(), estimator: second, loss, run })) {
      expect([second.count, second.arrays.calls[0]]).toEqual([iteration, iteration])
    }
    expect(second.count).toBe(4)
  })

  it("is restored in separate arrays, including empty ones", async () => {
    const directory = join(folder, "run")
    const arrays = { none: new Float64Array(0), bytes: new Uint8Array(Buffer.from("abc")) }
    const keeping = () => Object.assign(new Memory("keeping"), { arrays: arrays as NonNullable<StateDict["arrays"]> })
    {
      await using run = await Run.open(directory, {})
      await train({ ...setup(), hooks: keeping(), iterations: 1, run })
    }
    const read = Object.assign(keeping(), { arrays: {} as NonNullable<StateDict["arrays"]> })
    await using run = await Run.open(directory, {}, { resume: true })
    await train({ ...setup(), hooks: read, iterations: 1, run })
    expect(read.arrays).toEqual(arrays)
    expect(read.arrays.none!.buffer.byteLength).toBe(0)
  })

  it.each<[string, object, RegExp]>([
    ["restore() is missing", { state: () => ({}) }, /only one of state\(\) and restore\(\)/],
    ["state() is missing", { restore: () => {} }, /only one of state\(\) and restore\(\)/],
    ["state() gives nothing", { state: () => undefined, restore: () => {} }, /must return \{ json, arrays \}/],
    ["state() is async", { state: async () => ({}), restore: () => {} }, /must return .* not a promise/],
    ["state() gives more", { state: () => ({ means: 1 }), restore: () => {} }, /"means" is not known/],
    ["JSON loses it", { state: () => ({ json: { a: [new Map()] } }), restore: () => {} }, /json\.a\[0\] is a Map/],
    ["JSON has no such number", { state: () => ({ json: [Number.NaN] }), restore: () => {} }, /json\[0\] is NaN/],
    ["an array is a list", { state: () => ({ arrays: { a: [1] } }), restore: () => {} }, /arrays\.a must be one of/],
    [
      "state() throws",
      {
        state: () => {
          throw new Error("full")
        },
        restore: () => {},
      },
      /state\(\) of the .* threw: full/,
    ],
  ])("is rejected before anything is touched where %s", async (_, memory, message) => {
    const policy = new TablePolicy()
    const directory = join(folder, "run")
    const tasks = { next: () => ({ id: "x" }), ...memory }
    await using run = await Run.open(directory, {})
    await expect(train({ ...setup(), policy, tasks, run } as never)).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(message),
    })
    expect(policy.steps).toBe(0)
    expect(await readdir(folder)).toEqual([])
  })

  it("of another estimator is rejected on resume before the log is cut, and starts anew in a fork", async () => {
    const directory = join(folder, "run")
    {
      await using run = await Run.open(directory, {})
      await train({ ...setup(), estimator: counting(), run })
    }
    {
      await using run = await Run.open(directory, {}, { resume: true })
      const other = train({ ...setup(), estimator: gigpo({}), run })
      await expect(other).rejects.toThrow(/another estimator: it was counting and is now gigpo/)
      expect(run.begun).toBe(false)
    }
    const warnings: string[] = []
    const fork = { fork: directory, onWarning: (message: string) => warnings.push(message) }
    await using run = await Run.open(join(folder, "fork"), {}, fork)
    const reports = await train({ ...setup(), estimator: gigpo({}), iterations: 5, run })
    expect(reports.map(({ iteration }) => iteration)).toEqual([5])
    expect(warnings).toEqual(["The estimator starts without its saved state: it was counting and is now gigpo."])
  })
})
