import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Trainable } from "../../src/engine/engine.ts"
import { Run } from "../../src/runs/run.ts"
import { sft } from "../../src/sft/sft.ts"
import { evaluate } from "../../src/training/evaluate.ts"
import { train } from "../../src/training/train.ts"
import { TablePolicy } from "./table-policy.ts"
import { tableSetup } from "./table-setup.ts"
import { openDoors, openReadableDoors, TinyModel } from "./tiny.ts"

const environment = openReadableDoors()
const model = new TinyModel(environment)
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-busy-"))
})
afterAll(async () => await rm(folder, { recursive: true }))

const setup = (policy: Trainable, changes: object = {}) => ({ ...tableSetup(), environment, policy, ...changes })
const cloning = (policy: Trainable, changes: object = {}) => {
  const { tokenizer } = tableSetup()
  return { policy, tokenizer, environment, tasks: 4, epochs: 2, ...changes }
}
const works: Readonly<Record<string, (policy: Trainable) => PromiseLike<unknown>>> = {
  train: (policy) => train(setup(policy)),
  sft: (policy) => sft(cloning(policy)),
}

/** Two objects of which neither is the policy, and which both pass their calls on to it. */
const wrappers: Readonly<Record<string, (policy: TablePolicy) => Trainable>> = {
  "the policy itself": (policy) => policy,
  "a Proxy": (policy) =>
    new Proxy(policy, {
      get: (target, key) => {
        const value = Reflect.get(target, key, target)
        return typeof value === "function" ? value.bind(target) : value
      },
    }),
  "an object of its methods": (policy) => ({
    vocabularySize: policy.vocabularySize,
    maxPositions: policy.maxPositions,
    deterministic: true,
    losses: policy.losses,
    store: policy.store,
    reference: policy.reference,
    sample: (request) => policy.sample(request),
    logProbs: (rows, options) => policy.logProbs(rows, options),
    forwardBackward: (rows, loss) => policy.forwardBackward(rows, loss),
    optimizerStep: (step) => policy.optimizerStep(step),
    clearGradients: () => policy.clearGradients(),
    check: () => policy.check(),
  }),
}

describe("a policy in training", () => {
  const pairs = Object.keys(works).flatMap((first) => Object.keys(works).map((second) => [first, second] as const))
  for (const [wrapper, wrap] of Object.entries(wrappers))
    it.each(pairs)(`rejects a second training, ${wrapper}: %s, then %s`, async (first, second) => {
      const alone = new TablePolicy()
      await works[first]!(alone)
      const policy = new TablePolicy()
      const running = works[first]!(wrap(policy))
      const both = await Promise.allSettled([running, works[second]!(wrap(policy))])
      expect(both[0].status).toBe("fulfilled")
      expect(both[1]).toMatchObject({
        reason: { code: "POLICY_BUSY", message: expect.stringContaining(`by ${first}`) },
      })
      expect(policy.logits).toEqual(alone.logits)
      await works[second]!(policy) // free again
    })

  it("names the run of the first and does not change the second", async () => {
    const policy = new TablePolicy()
    const options = { iterations: 2 }
    await using first = await Run.open(join(folder, "first"), options)
    await using second = await Run.open(join(folder, "second"), options)
    const refused = expect.objectContaining({ code: "POLICY_BUSY", message: expect.stringContaining(first.directory) })
    const running = train(setup(policy, { ...options, run: first }))
    const [, other] = await Promise.allSettled([running, train(setup(policy, { ...options, run: second }))])
    expect(other).toMatchObject({ reason: refused })
    expect((await readdir(folder)).sort()).toEqual(["first"])
  })

  it("locks its run: another policy cannot be trained with the same Run", async () => {
    await using run = await Run.open(join(folder, "shared"), {})
    const both = await Promise.allSettled([
      train(setup(new TablePolicy(), { run })),
      train(setup(new TablePolicy(), { run })),
    ])
    expect(both).toMatchObject([
      { status: "fulfilled" },
      { reason: { code: "POLICY_BUSY", message: expect.stringContaining("this run is in use by train") } },
    ])
  })

  it("is released after a training that failed, was rejected, was aborted or left", async () => {
    const policy = new TablePolicy()
    const failing = openDoors({ prompt: () => "" as never })
    const controller = new AbortController()
    const endings = [
      async () => await train(setup(policy, { environment: failing })),
      async () => await train(setup(policy, { iterations: -1 })),
      async () => {
        for await (const _ of train(setup(policy, { signal: controller.signal }))) controller.abort(new Error("enough"))
      },
      async () => {
        for await (const _ of train(setup(policy))) break
      },
    ]
    for (const end of endings) await end().catch(() => {})
    expect(await train(setup(policy))).toHaveLength(3)
  })

  it("rejects a second training between two reports, too, without effect on the first", async () => {
    const policy = new TablePolicy()
    const refused: unknown[] = []
    for await (const _ of train(setup(policy))) await works.sft!(policy).then(null, (error) => refused.push(error))
    expect(refused).toEqual(Array(3).fill(expect.objectContaining({ code: "POLICY_BUSY" })))
    const alone = new TablePolicy()
    await train(setup(alone))
    expect(policy.logits).toEqual(alone.logits)
  })

  it("cannot be a teacher at the same time, nor be trained while it is one", async () => {
    const [policy, other] = [new TablePolicy(), new TablePolicy()]
    const taught = { ...setup(other), teacher: policy, estimator: { name: "on-policy-distillation" } as never }
    const both = await Promise.allSettled([train(setup(policy)), train(taught)])
    expect(both[1]).toMatchObject({ reason: { code: "POLICY_BUSY", message: expect.stringContaining("teacher") } })
    const turned = await Promise.allSettled([train({ ...setup(other), teacher: policy }), train(setup(policy))])
    expect(turned[1]).toMatchObject({ reason: { code: "POLICY_BUSY", message: expect.stringContaining("teacher") } })
  })
})

describe("an evaluation", () => {
  const evaluation = (policy: Trainable) => {
    const { tokenizer } = tableSetup()
    return evaluate({ policy, tokenizer, environment, tasks: 8, rollout: { maxCompletionTokens: 2 } })
  }

  it("is rejected while its policy is trained, and allowed between two reports", async () => {
    const policy = new TablePolicy()
    const running = train(setup(policy)).then((reports) => reports) // which begins it
    const [, refused] = await Promise.allSettled([running, evaluation(policy)])
    expect(refused).toMatchObject({ reason: { code: "POLICY_BUSY", message: expect.stringContaining("by train") } })
    for await (const _ of train(setup(policy))) expect(await evaluation(policy)).toMatchObject({ episodes: 8 })
  })

  it("prevents the start of a training, and several can run at once", async () => {
    const policy = new TablePolicy()
    const evaluations = [evaluation(policy), evaluation(policy)]
    await expect(Promise.resolve(train(setup(policy)))).rejects.toMatchObject({
      code: "POLICY_BUSY",
      message: expect.stringContaining("by evaluate"),
    })
    expect(await Promise.all(evaluations)).toHaveLength(2)
    await train(setup(policy))
  })

  it("started between two reports and not awaited ends when the training continues", async () => {
    const policy = new TablePolicy()
    const left: Promise<unknown>[] = []
    for await (const { iteration } of train(setup(policy)))
      if (iteration === 1) left.push(evaluation(policy).catch((error) => error))
    expect(await left[0]).toMatchObject({
      code: "POLICY_BUSY",
      message: expect.stringContaining("trained during its evaluation"),
    })
  })
})

describe("the native engine", () => {
  it("rejects direct changes while a training computes, and allows them between reports and afterwards", async () => {
    const { policy, tokenizer } = await model.open(model.directory, { critic: true })
    const critic = await policy.critic()
    const rows = [{ tokens: Int32Array.of(1, 2, 3), segments: [{ start: 1, length: 2 }] }]
    const valued = rows.map((row) => ({ ...row, segments: [{ start: 1, length: 2, returns: Float32Array.of(1, 1) }] }))
    const directory = join(folder, "saved")
    const changes: Readonly<Record<string, () => Promise<unknown>>> = {
      "forwardBackward()": () => policy.forwardBackward(rows, { kind: "cross-entropy" }),
      "optimizerStep()": () => policy.optimizerStep({ learningRate: 0 }),
      "clearGradients()": () => policy.clearGradients(),
      "load()": () => policy.load(model.directory),
      "loadAdapter()": () => policy.loadAdapter(directory),
      "loadOptimizer()": () => policy.loadOptimizer(directory, 1),
      "store.restore()": () => policy.store.restore({ optimizerSteps: 1 }, directory),
      "reference.freeze()": () => policy.reference.freeze(),
      "critic forwardBackward()": () =>
        critic.forwardBackward(valued, { kind: "clipped-value", clip: Number.POSITIVE_INFINITY }),
      "critic optimizerStep()": () => critic.optimizerStep({ learningRate: 0 }),
      "critic clearGradients()": () => critic.clearGradients(),
      "critic store.restore()": () => critic.store.restore({ optimizerSteps: 1 }, directory),
    }
    const options = { iterations: 2, groups: 2, groupSize: 3, rollout: { maxCompletionTokens: 4 } }
    const refused: string[] = []
    let asked: Promise<unknown> | undefined
    const onProgress = () => {
      asked ??= Promise.all(
        Object.entries(changes).map(([call, change]) =>
          change().catch((error) => error.code === "POLICY_BUSY" && refused.push(`${call}: ${error.message}`)),
        ),
      )
    }
    // Told from a timer, as by a program's other work.
    const later = () => void setTimeout(onProgress)
    let between = 0
    for await (const _ of train({ policy, tokenizer, environment, ...options, onProgress: later })) {
      await policy.clearGradients()
      await policy.save(join(folder, `between-${between++}`))
    }
    await asked
    expect(refused.map((text) => text.split(": ")[0])).toEqual(Object.keys(changes))
    for (const text of refused) expect(text).toContain("train without a run")
    await policy.optimizerStep({ learningRate: 0 })
  })

  it("allows reading during training: sampling, log-probabilities, saving", async () => {
    const { policy, tokenizer } = await model.open()
    const options = { iterations: 2, groups: 2, groupSize: 3, rollout: { maxCompletionTokens: 4 } }
    const running = train({ policy, tokenizer, environment, ...options })
    const rows = [{ tokens: Int32Array.of(1, 2, 3), segments: [{ start: 1, length: 2 }] }]
    const request = { prompt: Int32Array.of(1), maxTokens: 2, stopTokens: [], key: [1, 2] as const }
    const reading = [policy.sample(request), policy.logProbs(rows), policy.save(join(folder, "meanwhile"))]
    const [reports] = await Promise.all([running, ...reading])
    expect(reports).toHaveLength(2)
  })
})
