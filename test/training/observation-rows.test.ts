import { expect, it, vi } from "vitest"
import type { Sequence } from "../../src/engine/sequence.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { observationRows } from "../../src/training/observation-rows.ts"
import { train } from "../../src/training/train.ts"
import { characters, TablePolicy } from "./table-policy.ts"
import { tableSetup } from "./table-setup.ts"
import { openReadableDoors } from "./tiny.ts"

const echo = { name: "echo", alpha: 5 } as const

/** Trains, and returns what was learned that the policy did not sample: the rows, and each text after its context. */
async function learned(setup: ReturnType<typeof tableSetup>) {
  const batches: (readonly Sequence[])[] = []
  const { forwardBackward } = setup.policy
  vi.spyOn(setup.policy, "forwardBackward").mockImplementation((rows, ...rest) => {
    batches.push(rows)
    return forwardBackward.call(setup.policy, rows, ...rest)
  })
  await train({ ...setup, loss: echo } as never)
  const rows = batches.flat().filter(({ segments }) => segments.some(({ offPolicy }) => offPolicy))
  const texts = rows.flatMap(({ tokens, segments }) =>
    segments.map(({ start, length }) => [tokens.subarray(0, start), tokens.subarray(start, start + length)] as const),
  )
  return { rows, texts: texts.map((parts) => parts.map((part) => characters.decode(part)) as [string, string]) }
}

it("the next observation after a completion is learned, where each step has a prompt of its own", async () => {
  const environment = openReadableDoors() as Environment
  const setup = tableSetup({ groups: 12, stepsPerUpdate: 1000, environment })
  const { rows, texts } = await learned(setup)
  expect(texts.length).toBeGreaterThan(4)
  for (const [context, observed] of texts) {
    expect(observed).toMatch(/^(red|green|blue) \d/)
    expect(context).not.toBe("")
  }
  const before = rows.flatMap(({ segments }) => segments.flatMap(({ oldLogProbs }) => [...oldLogProbs!]))
  const { logProbs } = await setup.policy.logProbs(rows)
  const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0)
  expect(sum(logProbs)).toBeGreaterThan(sum(before))
})

/** Rows for steps of one episode, each told by its prompt, its completion and its observation. */
async function rowsOf(steps: readonly (readonly [string, string, string])[], more: object = {}) {
  const collected = steps.map(([prompt, completion, text], at) => ({
    ...{ task: 0, episode: 0, ...(at < 2 && more) },
    record: { prompt: characters.encode(prompt), completion: characters.encode(completion), observation: { text } },
  }))
  const options = { rollout: { temperature: 1 } }
  const training = { loss: { observations: true }, tokenizer: characters, policy: new TablePolicy(), options }
  const progress = { iteration: 0, iterations: 1 }
  const rows = await observationRows(training as never, collected as never, progress)
  return rows.map(({ tokens, segments: [segment] }) => {
    expect(segment).toMatchObject({ offPolicy: true, advantage: 0, length: tokens.length - segment!.start })
    expect(segment!.oldLogProbs).toHaveLength(segment!.length)
    return [tokens.subarray(0, segment!.start), tokens.subarray(segment!.start)].map((part) => characters.decode(part))
  })
}

it("the tokens between two completions are learned in a growing conversation, and the first prompt is not", async () => {
  const steps = [
    ["red? ", "a", "red?"],
    ["red? a. green? ", "b", "green?"],
    ["red? a. green? b. blue? ", "c", "blue?"],
  ] as const
  expect(await rowsOf(steps)).toEqual([
    ["red? a", ". green? "],
    ["red? a. green? b", ". blue? "],
  ])
})

it("other agents' and conversations' steps are no observations, and a row that is too long is left out", async () => {
  const steps = [
    ["red? ", "a", "red?"],
    ["green? ", "b", "green?"],
    ["blue? ", "c", "blue?"],
    ["x", "d", "y".repeat(400)],
  ] as const
  expect(await rowsOf(steps, { agent: "planner" })).toEqual([["red? a", "green?"]])
  expect(await rowsOf(steps.slice(0, 3), { conversation: 1 })).toEqual([["red? a", "green?"]])
})

it.each([
  [{ loss: { ...echo, klWeight: 0.1 } }, /the loss echo has tokens without scores of a reference/],
  [{ loss: { ...echo, teacherWeight: 0.1 } }, /set loss\.klWeight and loss\.teacherWeight to 0/],
])("a term that needs scores of observations is rejected: %o", async (changes, message) => {
  await expect(train({ ...tableSetup(), ...changes } as never)).rejects.toThrow(message)
})
