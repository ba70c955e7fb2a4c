import { rm } from "node:fs/promises"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import type { NativePolicyOptions } from "../../src/engine/native/options.ts"
import { type Sequence, stepSequence } from "../../src/engine/sequence.ts"
import type { ModelImage } from "../../src/native/model.ts"
import { Random } from "../../src/util/random.ts"
import {
  credited,
  crossEntropy,
  gradients,
  logProbsOf,
  modelPath,
  normError,
  randomTokens,
  relativeError,
  surrogate,
} from "./fixtures.ts"
import { imageOf, numbersOf, readVision, writeVisionModel } from "./vision-fixtures.ts"

// What a policy does with images besides the numbers of one pass: caches, shared prefixes, adapters, critics, rejections.

const step = { learningRate: 0.01 }

describe.each(["qwen2-5-vl", "smolvlm-untied"] as const)("a policy of %s", (name) => {
  const fixture = readVision(name)
  const { cases, images } = fixture
  const random = new Random(5)
  const tower = [...fixture.shapes.keys()].filter((key) => /^visual|vision_model|connector/.test(key))
  const language = [...fixture.shapes.keys()].filter((key) => !tower.includes(key))
  /** An image of the same size with other values. */
  const other = imageOf(numbersOf("another image", images.small.patches.length), images.small.grid)
  let folder: string
  let policy: NativePolicy

  const open = async (options: NativePolicyOptions = {}, path = folder) =>
    await NativePolicy.open(path, { device: "cpu", precision: "float32", ...options })
  /** A prompt that shows one image of the size "small", long enough for shared pages of the KV cache. */
  const prompt = () => {
    const { prompt: ids, images: own } = cases[2]!
    const first = own.indexOf(images.small)
    const before = cases[0]!.prompt.slice(0, 3)
    const shown = Array.from(ids)
      .filter((id) => id === 47)
      .slice(0, featuresOf(images.small))
    expect(first).toBe(1)
    return Int32Array.of(...before, ...shown, ...before, ...before, ...before, ...before, ...before, ...before)
  }
  const featuresOf = ({ grid }: ModelImage) => (name === "qwen2-5-vl" ? (grid[1] * grid[2]) / 4 : (grid[0] * 36) / 9)
  const showing = (image: ModelImage, reply: Int32Array): Sequence => ({
    ...stepSequence(prompt(), reply),
    attachments: [image],
  })
  const greedy = async (from: NativePolicy, attachments: readonly ModelImage[]) =>
    await from.sample({ prompt: prompt(), attachments, maxTokens: 6, temperature: 0, stopTokens: [], key: [1, 2] })

  beforeAll(async () => {
    folder = await writeVisionModel(fixture)
    policy = await open()
  })
  afterAll(async () => {
    await policy.dispose()
    await rm(folder, { recursive: true })
  })

  it("samples tokens with the log-probabilities that it scores", async () => {
    for (const { prompt: ids, images: attachments } of cases) {
      const request = {
        prompt: ids,
        attachments,
        maxTokens: 9,
        stopTokens: [],
        key: random.derive(`${ids}`).key,
      } as const
      const { tokens, logProbs } = await policy.sample(request)
      const [scored] = await logProbsOf(policy, [{ ...stepSequence(ids, tokens), attachments }])
      expect(relativeError(logProbs, scored!)).toBeLessThan(1e-5)
    }
  })

  it("shares the KV cache of equal images only", async () => {
    const [small, different] = [images.small, other].map((image) => [image])
    await using fresh = await open()
    const first = await greedy(fresh, small!)
    const before = fresh.statistics.reusedTokens
    const second = await greedy(fresh, different!)
    const third = await greedy(fresh, small!)
    expect(third).toEqual(first)
    expect(fresh.statistics.reusedTokens - before).toBeGreaterThanOrEqual(16)
    await using alone = await open()
    expect(second).toEqual(await greedy(alone, different!))
    expect(relativeError(second.logProbs, first.logProbs)).toBeGreaterThan(1e-3)
  })

  it("generates the same text beside other requests, and after its cache was taken away", async () => {
    await using small = await open({ kvCacheBytes: 1, maxPositions: 64 })
    const all = await Promise.all(
      cases.slice(0, 1).flatMap(() => [images.small, other, images.small].map((image) => greedy(small, [image]))),
    )
    const [one, two] = [await greedy(policy, [images.small]), await greedy(policy, [other])]
    expect(all.map(({ tokens }) => [...tokens])).toEqual([one, two, one].map(({ tokens }) => [...tokens]))
  })

  it("trains rows with equal tokens and different images apart, and equal beginnings once", async () => {
    const replies = [1, 5, 3, 4].map((length) => randomTokens(length, random).map((token) => token % 44))
    const rows = replies.map((reply, i) => showing(i < 2 ? images.small : other, reply))
    rows.push(...cases.map(({ row }) => row))
    const options = [{}, { sharePrefixes: false }, { recompute: "block" }, { microBatchTokens: 64 }] as const
    const found = []
    for (const one of options) {
      await using some = await open({ trainVision: true, ...one })
      const { loss, metrics } = await some.forwardBackward(rows, crossEntropy)
      found.push({ loss, metrics, gradients: await gradients(some, [...fixture.shapes.keys()]) })
    }
    const [together, ...others] = found
    for (const one of others) {
      expect(one.loss).toBeCloseTo(together!.loss, 5)
      for (const [key, gradient] of one.gradients) {
        const most = Math.max(...gradient.map(Math.abs))
        if (most > 1e-6) expect(relativeError(together!.gradients.get(key)!, gradient), key).toBeLessThan(1e-4)
      }
    }
  })

  it("keeps the vision tower as it is unless it is trained", async () => {
    for (const trainVision of [false, true]) {
      await using some = await open({ trainVision })
      const before = new Map(
        await Promise.all([...fixture.shapes.keys()].map(async (key) => [key, await some.tensor(key)] as const)),
      )
      const image = await some.logits(cases[0]!.row.tokens, cases[0]!.images)
      await some.forwardBackward(
        cases.map(({ row }) => row),
        crossEntropy,
      )
      await some.optimizerStep(step)
      for (const key of language) expect(await some.tensor(key), key).not.toEqual(before.get(key))
      for (const key of tower) {
        if (trainVision) expect(await some.tensor(key), key).not.toEqual(before.get(key))
        else expect(await some.tensor(key), key).toEqual(before.get(key))
      }
      expect(await some.logits(cases[0]!.row.tokens, cases[0]!.images)).not.toEqual(image)
    }
    await expect(policy.tensor(tower[0]!, "gradients")).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(/vision tower is frozen.*trainVision: true/),
    })
  })

  it("scores a reference policy with the features of its own tower", async () => {
    await using some = await open({ trainVision: true, reference: true })
    const rows = cases.map(({ row }) => row)
    const before = await logProbsOf(some, rows)
    await some.reference.freeze()
    await some.forwardBackward(rows, crossEntropy)
    await some.optimizerStep(step)
    expect(await logProbsOf(some, rows, { model: "reference" })).toEqual(before)
    expect(await logProbsOf(some, rows)).not.toEqual(before)
    await expect(some.logProbs(rows, { needs: ["hellinger"] })).rejects.toThrow(/hellinger.*trainVision/)
  })

  it("continues from a checkpoint", async () => {
    const rows = cases.map(({ row }) => row)
    const at = join(folder, `checkpoint-${name}`)
    for (const trainVision of [false, true]) {
      await using some = await open({ trainVision })
      await some.forwardBackward(rows, crossEntropy)
      await some.optimizerStep(step)
      const handle = await some.store.checkpoint(`${at}-${trainVision}`)
      await using other = await open({ trainVision })
      await other.store.restore(handle, `${at}-${trainVision}`)
      for (const one of [some, other]) {
        await one.forwardBackward(rows, crossEntropy)
        await one.optimizerStep(step)
      }
      expect(await logProbsOf(other, rows)).toEqual(await logProbsOf(some, rows))
    }
  })

  it("trains an adapter of the language model, and reads it back", async () => {
    const rows = cases.map(({ row }) => row)
    await using some = await open({ lora: { rank: 2 } })
    expect(await logProbsOf(some, rows)).toEqual(await logProbsOf(policy, rows))
    for (let i = 0; i < 2; i++) {
      await some.forwardBackward(rows, crossEntropy)
      await some.optimizerStep(step)
    }
    const trained = await logProbsOf(some, rows)
    expect(relativeError(trained[0]!, (await logProbsOf(policy, rows))[0]!)).toBeGreaterThan(1e-3)
    await some.saveAdapter(join(folder, "adapter"))
    await using again = await open({}, join(folder, "adapter"))
    expect(await logProbsOf(again, rows)).toEqual(trained)
    await some.save(join(folder, "merged"))
    await using merged = await open({}, join(folder, "merged"))
    for (const [i, found] of (await logProbsOf(merged, rows)).entries())
      expect(relativeError(found, trained[i]!)).toBeLessThan(1e-4)
  })

  it("has a critic that sees the images", async () => {
    await using some = await open({ critic: true })
    const critic = await some.critic()
    const rows = cases.map(({ row, reply }) =>
      credited(row, { returns: Float32Array.from(reply, (_, i) => i - 1), values: new Float32Array(reply.length) }),
    )
    for (let i = 0; i < 3; i++) {
      await critic.forwardBackward(rows, { kind: "clipped-value", clip: 10 })
      await critic.optimizerStep(step)
    }
    const reply = Int32Array.of(7, 8, 9)
    const [one, two] = [
      await critic.predict([showing(images.small, reply)]),
      await critic.predict([showing(other, reply)]),
    ]
    expect(relativeError(one, two)).toBeGreaterThan(1e-3)
    const both = await critic.predict([showing(images.small, reply), showing(other, reply)])
    expect(relativeError(both, [...one, ...two])).toBeLessThan(1e-5)
    const at = join(folder, "critic")
    const handle = await critic.store.checkpoint(at)
    await critic.forwardBackward(rows, { kind: "clipped-value", clip: 10 })
    await critic.optimizerStep(step)
    await critic.store.restore(handle, at)
    expect(await critic.predict([showing(images.small, reply)])).toEqual(one)
  })

  it("computes in bfloat16, with features of bfloat16", async () => {
    await using some = await open({ precision: "bfloat16", trainVision: true })
    for (const { row, images: own, logits } of cases)
      expect(normError(await some.logits(row.tokens, own), logits)).toBeLessThan(0.05)
    await some.forwardBackward(
      cases.map(({ row }) => row),
      crossEntropy,
    )
    const [key] = tower
    expect(normError(await some.tensor(key!, "gradients"), fixture.gradients.get(key!)!)).toBeLessThan(0.2)
  })

  it("is created with random weights, which see the images", async () => {
    await using some = await NativePolicy.create(policy.config, new Random(3), { device: "cpu", deviation: 0.5 })
    for (const key of tower.filter((one) => /norm|ln_q/.test(one)))
      expect(new Set(await some.tensor(key)), key).toEqual(new Set([key.endsWith(".weight") ? 1 : 0]))
    const tokens = prompt()
    const [one, two] = [await some.logits(tokens, [images.small]), await some.logits(tokens, [other])]
    expect(relativeError(one, two)).toBeGreaterThan(1e-3)
  })

  it("reads text without images", async () => {
    const tokens = Int32Array.of(5, 6, 7, 8, 9, 10)
    const request = { prompt: tokens, maxTokens: 4, temperature: 0, stopTokens: [], key: [1, 2] } as const
    const { tokens: reply, logProbs } = await policy.sample(request)
    const [scored] = await logProbsOf(policy, [stepSequence(tokens, reply)])
    expect(relativeError(logProbs, scored!)).toBeLessThan(1e-5)
  })

  it.each<[string, (images: typeof fixture.images) => readonly unknown[], RegExp]>([
    ["no image", () => [], /has \d+ image tokens \(id 47\), but its 0 images have 0 features/],
    ["too many images", ({ small }) => [small, small], /but its 2 images have \d+ features/],
    ["a number", () => [1], /attachments\[0\] is no image: give \{ patches/],
    ["a bad grid", ({ small }) => [{ ...small, grid: [1, 0, 2] }], /attachments\[0\] is no image/],
    [
      "too few values",
      ({ small }) => [{ ...small, hash: "short", patches: small.patches.slice(1) }],
      /has \d+ values, but its grid/,
    ],
    [
      "two sizes of one hash",
      ({ small, wide }) => [small, { ...wide, hash: small.hash }],
      /same hash and different sizes/,
    ],
  ])("rejects a prompt with %s", async (_, attachments, message) => {
    const request = { prompt: prompt(), maxTokens: 2, stopTokens: [], key: [1, 2] } as const
    const refused = { code: "BAD_ARGUMENT", message: expect.stringMatching(message) }
    await expect(policy.sample({ ...request, attachments: attachments(images) })).rejects.toMatchObject(refused)
    await expect(
      policy.logProbs([{ ...stepSequence(prompt(), Int32Array.of(3)), attachments: attachments(images) }]),
    ).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
    })
  })

  it("rejects a trained tower beside an adapter", async () => {
    await expect(open({ lora: { rank: 2 }, trainVision: true })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(/trainVision cannot be combined with lora/),
    })
  })
})

it("a language model rejects images, and a vision tower to train", async () => {
  await using policy = await NativePolicy.open(modelPath("qwen2"), { device: "cpu" })
  const image = imageOf(new Float32Array(4), [1, 2, 2])
  const refused = { code: "BAD_ARGUMENT", message: expect.stringMatching(/no vision tower.*vision-language model/) }
  const tokens = Int32Array.of(1, 2)
  await expect(policy.logits(tokens, [image])).rejects.toMatchObject(refused)
  await expect(
    policy.sample({ prompt: tokens, attachments: [image], maxTokens: 2, stopTokens: [], key: [1, 2] }),
  ).rejects.toMatchObject(refused)
  const row = credited(
    { ...stepSequence(tokens, tokens), attachments: [image] },
    { advantage: 1, logProbs: new Float32Array(2) },
  )
  await expect(policy.forwardBackward([row], surrogate())).rejects.toMatchObject(refused)
  await expect(NativePolicy.open(modelPath("qwen2"), { trainVision: true })).rejects.toMatchObject({
    code: "BAD_ARGUMENT",
    message: expect.stringMatching(/Qwen2 model has no vision tower/),
  })
})
