import { expect, it } from "vitest"
import { sft } from "../../src/sft/sft.ts"
import { train } from "../../src/training/train.ts"
import { openReadableDoors, TinyModel } from "../training/tiny.ts"
import { Servings } from "./serving.ts"

const environment = openReadableDoors()
const tiny = new TinyModel(environment)
const servings = new Servings()

it("a remote policy that is being trained rejects another learner and direct changes, and is free afterwards", async () => {
  const serving = await servings.serve(tiny.directory)
  const policy = await serving.connect({ rank: 4 })
  const { tokenizer } = await tiny.open()
  const options = { iterations: 1, groups: 2, groupSize: 2, rollout: { maxCompletionTokens: 3 } }
  const busy = (by: string) => ({ reason: { code: "POLICY_BUSY", message: expect.stringContaining(by) } })
  const rows = [{ tokens: Int32Array.of(1, 2, 3), segments: [{ start: 1, length: 2 }] }]
  const running = train({ policy, tokenizer, environment, ...options }).then((reports) => reports)
  const others = await Promise.allSettled([
    sft({ policy, tokenizer, environment, tasks: 2, epochs: 1 }),
    policy.forwardBackward(rows, { kind: "cross-entropy" }),
    policy.optimizerStep({ learningRate: 0 }),
    policy.clearGradients(),
    policy.store.restore({ path: "tinker://x" }, "."),
    policy.reference.freeze(),
  ])
  for (const other of others) expect(other).toMatchObject(busy("train without a run"))
  expect(await running).toHaveLength(1)
  expect(await sft({ policy, tokenizer, environment, tasks: 2, epochs: 1 })).toHaveLength(1)
})
