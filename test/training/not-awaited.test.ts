import { expect, it } from "vitest"
import { evaluateBenchmark } from "../../src/benchmark/evaluate.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { takeTasks } from "../../src/rollout/tasks.ts"
import { initializeModel } from "../../src/sft/initialize.ts"
import { sft } from "../../src/sft/sft.ts"
import { evaluate } from "../../src/training/evaluate.ts"
import { train } from "../../src/training/train.ts"
import { Random } from "../../src/util/random.ts"
import { characters, TablePolicy } from "./table-policy.ts"
import { openDoors } from "./tiny.ts"

const setup = { policy: new TablePolicy(), tokenizer: characters, environment: openDoors() }
const late = <T>(value: T): Promise<T> => Promise.resolve(value)
const calls: Record<string, (changes: object) => PromiseLike<unknown>> = {
  train: (changes) => train({ ...setup, ...changes } as never),
  sft: (changes) => sft({ ...setup, ...changes } as never),
  evaluate: (changes) => evaluate({ ...setup, ...changes } as never),
  initializeModel: (changes) =>
    initializeModel({ directory: "nowhere", environment: setup.environment, ...changes } as never),
  evaluateBenchmark: (changes) => evaluateBenchmark({ ...setup, ...changes } as never),
  rollout: (changes) => rollout({ ...setup, ...changes } as never),
}

it.each([
  ...["policy", "tokenizer", "environment", "run", "teacher", "agent"].map((key) => ["train", key]),
  ...["policy", "tokenizer", "environment", "run", "data"].map((key) => ["sft", key]),
  ...["policy", "tokenizer", "environment"].map((key) => ["evaluate", key]),
  ["initializeModel", "environment"],
  ["evaluateBenchmark", "benchmark"],
  ["evaluateBenchmark", "policy"],
  ...["policy", "tokenizer", "environment", "tasks"].map((key) => ["rollout", key]),
] as [string, string][])("%s rejects a promise as %s, with the fix", async (name, key) => {
  await expect(calls[name]!({ [key]: late({}) })).rejects.toMatchObject({
    code: "BAD_ARGUMENT",
    message: `${name}: ${key} is a promise; write await before the call that makes it.`,
  })
})

it("functions with an environment as their argument do the same", () => {
  expect(() => takeTasks(late(openDoors()) as never, "test", new Random(1), 1)).toThrow(
    /environment is a promise; write await/,
  )
})

it.each([
  ["estimator", "grpo", 'Write { name: "grpo" }, with its options next to the name.'],
  ["estimator", "GRPO", 'Write { name: "grpo" }, with its options next to the name.'],
  ["loss", "sapo", 'Write { name: "sapo" }, with its options next to the name.'],
  ["loss", "nothing like it", "Write { name }, with one of act-guide, "],
])("%s: %j in code says what to write", async (key, name, message) => {
  const text = `${key} must be a group of keys, not ${JSON.stringify(name)}. ${message}`
  await expect(calls.train!({ [key]: name })).rejects.toMatchObject({ message: expect.stringContaining(text) })
})
