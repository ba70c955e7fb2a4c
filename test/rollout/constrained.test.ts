import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { stateBlockMemory } from "../../src/environment/memory/state.ts"
import { sokoban } from "../../src/environment/sokoban/sokoban.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { initializeModel } from "../../src/sft/initialize.ts"
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { train } from "../../src/training/train.ts"
import { Random } from "../../src/util/random.ts"

// A model with random weights, which never writes a valid completion unaided.
const environment = sokoban({ size: [5, 5], boxes: 1, searchDepth: 3, maxSteps: 4, rules: false, thinking: "off" })
let folder: string
let policy: NativePolicy
let tokenizer: Tokenizer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-constrained-"))
  const directory = join(folder, "model")
  const options = { hiddenSize: 32, layers: 1, heads: 2, vocabularySize: 300, seed: 1 }
  await initializeModel({ directory, environment, options })
  tokenizer = await Tokenizer.open(directory)
  policy = await NativePolicy.open(directory)
})
afterAll(async () => {
  await policy.dispose()
  await tokenizer.dispose()
  await rm(folder, { recursive: true })
})

const play = (constrained: boolean, changes: object = {}) =>
  rollout({
    ...{ policy, tokenizer, environment, tasks: [...take(2)], groupSize: 4, concurrency: 8 },
    ...{ random: new Random(3), temperature: 1, maxCompletionTokens: 40, maxPositions: 256, maxSteps: 10 },
    ...{ environmentTimeout: 60, constrained, ...changes },
  })

it("makes every completion valid, though none was before", async () => {
  const [free, constrained] = [await play(false), await play(true)]
  const steps = ({ groups }: typeof free) => groups.flatMap(({ episodes }) => episodes.flatMap((one) => one.steps))
  expect(steps(free).filter(({ valid }) => valid)).toEqual([])
  expect(steps(constrained).length).toBeGreaterThan(16)
  for (const { valid, text, constraint, finishReason } of steps(constrained)) {
    expect([text, valid, finishReason]).toEqual([text, true, "stop"])
    expect(constraint).toBeDefined()
  }
  expect(new Set(steps(constrained).map(({ action }) => action)).size).toBeGreaterThan(2)
})

it("trains on the sampling distribution: the first ratio is 1", async () => {
  for await (const { metrics } of train({
    ...{ policy, tokenizer, environment, iterations: 1, groups: 2, groupSize: 4, stepsPerUpdate: 64, epochs: 1 },
    rollout: { maxCompletionTokens: 40, constrained: true },
  })) {
    expect(metrics["action/valid"]).toBe(1)
    expect(metrics["policy/ratio"]).toBeCloseTo(1, 5)
    expect(metrics["policy/kl"]).toBeCloseTo(0, 5)
  }
})

it("is rejected before the first episode if it cannot work", async () => {
  const { completionPattern: _, ...without } = environment
  await expect(play(true, { environment: without })).rejects.toThrow(
    /needs an environment that defines completionPattern/,
  )
  const remembers = sokoban({ memory: stateBlockMemory() })
  await expect(play(true, { environment: remembers })).rejects.toThrow(/notes that the memory state requires/)
  await expect(play(true, { tokenizer: { ...codec(tokenizer) } })).rejects.toThrow(
    /does not support constrained decoding/,
  )
})

function codec(tokenizer: Tokenizer) {
  return {
    eosTokens: tokenizer.eosTokens,
    encodeChat: tokenizer.encodeChat.bind(tokenizer),
    encode: tokenizer.encode.bind(tokenizer),
    decode: tokenizer.decode.bind(tokenizer),
  }
}

function* take(count: number) {
  for (const task of environment.tasks("train", new Random(1))) {
    if (count-- === 0) return
    yield task
  }
}
