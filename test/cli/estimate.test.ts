import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { resolveConfig } from "../../src/cli/config/resolve.ts"
import { cards, findCard, requireCard } from "../../src/cli/estimate/cards.ts"
import { diskUse, recordedBytes } from "../../src/cli/estimate/disk-use.ts"
import { distinctFeatures, ImageTokens, towerOperations } from "../../src/cli/estimate/images.ts"
import { distinctTokens, measureLengths } from "../../src/cli/estimate/measure.ts"
import { measureDisk } from "../../src/cli/estimate/measure-disk.ts"
import { modelSizes } from "../../src/cli/estimate/sizes.ts"
import {
  floorSeconds,
  iterationWork,
  type Machinery,
  samplingWork,
  sftWork,
  type Workload,
} from "../../src/cli/estimate/work.ts"
import { resolvePolicyOptions } from "../../src/engine/native/options.ts"
import type { Environment, Message } from "../../src/environment/environment.ts"
import type { ModelConfig } from "../../src/model-files/model-config.ts"
import type { ModelImage } from "../../src/native/model.ts"
import { wholeRun } from "../../src/training/whole-run.ts"
import { Random } from "../../src/util/random.ts"
import { built, gigpo, tiny } from "./gigpo.ts"

// Small enough to be worked out by hand: q has 2 × 4 columns, k and v 1 × 4.
const model: ModelConfig = {
  architecture: "Qwen3",
  vocabularySize: 100,
  hiddenSize: 10,
  intermediateSize: 20,
  layers: 3,
  heads: 2,
  keyValueHeads: 1,
  headSize: 4,
  rmsNormEpsilon: 1e-6,
  ropeTheta: 1e4,
  tieEmbeddings: true,
  queryKeyValueBias: false,
  queryKeyNorm: false,
  maxPositions: 64,
}
const work: Workload = {
  episodes: 4,
  steps: 5,
  promptTokens: 30,
  completionTokens: 10,
  concurrency: 3,
  epochs: 2,
  updates: 3,
  recomputed: false,
  reference: false,
}
const { adapter } = resolvePolicyOptions({ device: "cpu", lora: { rank: 2 } }, model)
const how: Machinery = { bytesPerNumber: 2, recompute: "none", momentBytes: 4 }

const part = (name: string, changes: Partial<Workload & Machinery> = {}) =>
  iterationWork(model, { ...work, ...changes }, { ...how, ...changes }).find((one) => one.name === name)

describe("the work of an iteration", () => {
  it("includes the teacher's pass over every row, by its size", () => {
    expect(part("teacher")).toBeUndefined()
    const [own, larger] = [part("teacher", { teacher: model }), part("teacher", { teacher: { ...model, layers: 6 } })]
    expect(own).toEqual({ ...part("reference", { reference: true }), name: "teacher" })
    // 20 rows of 40 tokens, three layers more: 2 operations a weight, and causal attention of width 24.
    expect(larger!.operations - own!.operations).toBe(20 * 40 * (2 * 3 * 840 + 2 * 40 * 24))
    expect(part("teacher", { teacher: model, adapter })).toEqual(own)
  })

  it("counts weights by their use", () => {
    // A layer: q and o 80 each, k and v 40 each, three of 200; norms of 10 twice. Embedding 1000, last norm 10.
    expect(modelSizes(model)).toEqual({
      parameters: 3 * (840 + 20) + 1000 + 10,
      tower: 0,
      body: 3 * 840,
      head: 1000,
      adapter: 0,
      pairs: 0,
      cacheNumbersPerToken: 2 * 3 * 4,
    })
    // Rank × (in + out): q 18, k and v 14, o 18, three of 30.
    expect(modelSizes(model, adapter).adapter).toBe(3 * 2 * (18 + 14 + 14 + 18 + 90))
    const lora = { rank: 2, targetModules: ["q_proj"], layersToTransform: [0, 2], modulesToSave: ["embed_tokens"] }
    const part = modelSizes(model, resolvePolicyOptions({ device: "cpu", lora }, model).adapter)
    expect(part).toMatchObject({ pairs: 2 * 2 * 18, adapter: 2 * 2 * 18 + 1000 })
  })

  it("of sampling", () => {
    // 20 rows. A prompt token: 2 × 2520, and 2 × 30 × 24 of causal attention.
    expect(part("prefill")).toEqual({ name: "prefill", tokens: 600, operations: 600 * (5040 + 1440), bytes: 0 })
    // A sampled token sees 35 others on average. 4 episodes, 3 at once: 2 × 5 × 10 passes over 3520 weights of 2 bytes, and
    // 200 tokens that read 35 × 24 numbers.
    expect(part("decode")).toEqual({
      name: "decode",
      tokens: 200,
      operations: 200 * (2 * 3520 + 4 * 35 * 24),
      bytes: 100 * 3520 * 2 + 200 * 35 * 24 * 2,
    })
  })

  it("of training", () => {
    // A row forward: 40 tokens × (2 × 2520 + 2 × 40 × 24), and the head of 10 tokens.
    const forward = 40 * (5040 + 1920) + 2 * 1000 * 10
    expect(part("training")).toMatchObject({ tokens: 2 * 20 * 40, operations: 2 * 20 * 3 * forward })
    expect(part("training", { recompute: "norms" })).toEqual(part("training"))
    const block = 2 * 20 * (3 * forward + 40 * (5040 + 1920))
    expect(part("training", { recompute: "block" })?.operations).toBe(block)
    const mlp = 2 * 20 * (3 * forward + 3 * 2 * 2 * 200 * 40)
    expect(part("training", { recompute: "mlp" })?.operations).toBe(mlp)
    expect(part("critic")).toBeUndefined()
    // Forward once, and both ways in each of its epochs, without a head to speak of.
    const trunk = 40 * (5040 + 1920)
    const critic = { epochs: 2, updates: 3 }
    expect(part("critic", { critic })).toMatchObject({ tokens: 3 * 800, operations: 20 * (1 + 2 * 3) * trunk })
    expect(part("optimizer", { critic })?.bytes).toBe(2 * (part("optimizer")?.bytes ?? 0))
    expect(part("recomputed")).toBeUndefined()
    expect(part("recomputed", { recomputed: true })).toMatchObject({ tokens: 800, operations: 20 * forward })
    expect(part("reference")).toBeUndefined()
    expect(part("reference", { reference: true })).toMatchObject({ tokens: 800, operations: 20 * forward })
  })

  it("of training an adapter excludes gradients of frozen weights", () => {
    const forward = 40 * (2 * (2520 + 924) + 1920) + 2 * 1000 * 10
    const frozen = 2 * (2520 * 40 + 1000 * 10)
    expect(part("training", { adapter })?.operations).toBe(2 * 20 * (3 * forward - frozen))
    // 34 bytes of each of 924 weights, in 2 × 3 steps.
    expect(part("optimizer", { adapter })?.bytes).toBe(6 * 924 * 34)
  })

  it("counts common prefixes of prompts once, which the other tokens attend to", () => {
    // 6 of the 30 tokens of a prompt are its own: they see 27 others on average, and the completion 35.
    const shared = { newTokens: 6 }
    expect(part("prefill", shared)).toMatchObject({ tokens: 120, operations: 20 * 6 * (5040 + 4 * 27 * 24) })
    expect(part("decode", shared)).toEqual(part("decode"))
    const forward = 16 * (5040 + 4 * 32 * 24) + 2 * 1000 * 10
    expect(part("training", shared)).toMatchObject({ tokens: 2 * 20 * 16, operations: 2 * 20 * 3 * forward })
    expect(part("training", { newTokens: 30 })).toEqual(part("training"))
  })

  describe("with images", () => {
    // Rows of 8 columns: patches 8 × 24 (3 channels, 2 frames, 2 × 2 pixels). Two blocks, one with windows of one feature.
    const vision = {
      ...({ kind: "qwen2.5-vl", hiddenSize: 8, intermediateSize: 12, layers: 2, heads: 1, channels: 3 } as const),
      ...{
        patchSize: 2,
        frames: 2,
        merge: 2,
        window: 1,
        fullLayers: [1],
        epsilon: 1e-6,
        imageToken: 7,
        sections: [1, 1, 0],
      },
    }
    const seeing: ModelConfig = { ...model, architecture: "Qwen2_5_VL", queryKeyValueBias: true, vision }
    // A feature is four patches, each of 192 weights of the embedding and twice 256 of attention and 288 of the MLP; then 32 × 32 and 10 × 32.
    const products = 4 * (192 + 2 * (256 + 288)) + 1024 + 320
    const forward = 2 * products + 4 * 4 * 8 * (16 + 4)
    const images = { newFeatures: 3, patches: 16 }
    const imagesOf = (changes: Partial<Workload & Machinery> = {}) =>
      iterationWork(seeing, { ...work, images, ...changes }, { ...how, ...changes })

    it("counts the passes of the vision tower, which a frozen one needs once", () => {
      expect(towerOperations(seeing, 16)).toBe(forward)
      expect(imagesOf()[0]).toEqual({ name: "images", tokens: 60, operations: 60 * forward, bytes: 0 })
      // Trained: once to sample, and in each of two epochs again, again for the backward pass, and that twice.
      expect(imagesOf({ trainVision: true })[0]!.operations).toBe(60 * (1 + 2 * 4) * forward)
      expect(samplingWork(seeing, { ...work, images }, how)[0]).toEqual(imagesOf()[0])
      expect(iterationWork(seeing, work, how).map(({ name }) => name)).not.toContain("images")
    })

    it("counts the weights of a frozen tower out of the optimizer's", () => {
      const { parameters, tower } = modelSizes(seeing)
      const norms = 2 * 2 * 8 + 8
      const biases = 2 * (24 + 8 + 12 + 12 + 8) + 32 + 10
      expect(tower).toBe(192 + 2 * (256 + 288) + 1024 + 320 + norms + biases)
      const bytes = (changes: Partial<Machinery>) => imagesOf(changes).find(({ name }) => name === "optimizer")!.bytes
      expect(bytes({ trainVision: true }) - bytes({})).toBe(6 * tower * (8 + 8 + 16 + 2))
      expect(parameters).toBeGreaterThan(tower)
    })

    it("takes equal images for equal tokens, and others for others", () => {
      const tokens = new ImageTokens(vision)
      const image = (hash: string): ModelImage => ({ hash, grid: [1, 4, 4], patches: new Float32Array() })
      const prompt = Int32Array.of(1, 7, 7, 7, 7, 2)
      const [first, other, again] = ["a", "b", "a"].map((hash) => tokens.number(prompt, [image(hash)]))
      expect([...first!]).toEqual([1, -1, -2, -3, -4, 2])
      expect([...other!]).toEqual([1, -5, -6, -7, -8, 2])
      expect(again).toEqual(first)
      expect(distinctFeatures([first!, other!, again!])).toBe(8)
      expect(tokens.patches).toBe(16)
      expect([...tokens.number(Int32Array.of(3, 7), [])]).toEqual([3, 7])
    })
  })

  it("of the optimizer", () => {
    expect(part("optimizer")?.bytes).toBe(6 * 3590 * (8 + 8 + 16 + 2))
    expect(part("optimizer", { momentBytes: 2, bytesPerNumber: 4 })?.bytes).toBe(6 * 3590 * (8 + 8 + 8))
  })

  it("of an evaluation is sampling only", () => {
    expect(samplingWork(model, work, how)).toEqual([part("prefill"), part("decode")])
    const twice = samplingWork(model, { ...work, episodes: 8 }, how)
    expect(twice[0]).toEqual({ name: "prefill", tokens: 1200, operations: 1200 * (5040 + 1440), bytes: 0 })
  })

  it("of SFT is that of training on the expert's steps", () => {
    const { promptTokens, completionTokens } = work
    // 20 rows in batches of 7: three steps, twice.
    const cloning = { rows: 20, promptTokens, completionTokens, epochs: 2, completionsPerUpdate: 7 }
    expect(sftWork(model, cloning, how)).toEqual([part("training"), part("optimizer")])
    const lora = { ...how, adapter }
    expect(sftWork(model, cloning, lora)).toEqual([part("training", lora), part("optimizer", lora)])
  })

  it("takes the maximum of computation and memory traffic", () => {
    const one = { name: "decode", tokens: 1, operations: 100, bytes: 30 } as const
    expect(floorSeconds(one, 10, 10)).toBe(10)
    expect(floorSeconds(one, 100, 10)).toBe(3)
  })
})

describe("the number of prompt tokens without repeated prefixes", () => {
  it("is the number of nodes of their prefix tree", () => {
    expect(distinctTokens([])).toBe(0)
    expect(distinctTokens([[1, 2, 3], [1, 2, 4], [5], [1, 2], [1, 2, 3]])).toBe(5)
    expect(distinctTokens([["ab", "c"], ["ab", "d"], ["b"]])).toBe(4)
  })

  it("equals that of an explicit tree, for random prompts", () => {
    const random = new Random(3)
    const prompts = Array.from({ length: 200 }, () => Array.from({ length: random.below(8) }, () => random.below(3)))
    const nodes = new Set(prompts.flatMap((prompt) => prompt.map((_, at) => prompt.slice(0, at + 1).join(" "))))
    expect(distinctTokens(prompts)).toBe(nodes.size)
  })
})

describe("the tokens per prompt that are computed in a batch of groups", () => {
  /** Two steps: a prompt with the task, then one with task and action. The expert always plays "a". */
  const environment = (actions?: readonly string[]): Environment<number> => ({
    name: "two-steps",
    *tasks() {
      for (let task = 1; ; task++) yield task
    },
    async start() {
      let steps = 0
      const observation = { text: "", anchor: "", ...(actions && { actions }) }
      const step = async () => ({ observation, reward: 0, terminated: ++steps === 2, truncated: false, metrics: {} })
      return { first: observation, step }
    },
    prompt: (task, history) => [
      { role: "user", content: [`${task}`, ...history.map((turn) => turn.action)].join(" ") },
    ],
    parse: (completion) => ({ action: completion, valid: true }),
    expert: () => ({ complete: () => "a" }),
  })
  /** A token per word, and one before all. */
  const counter = {
    prompt: async ([message]: readonly Message[]) => ["user", ...message!.content.split(" ")],
    completion: () => 1,
  }
  const measured = async (groupSize: number, actions?: readonly string[]) => {
    const config = await resolveConfig(
      `{ model: m, environment: { name: sokoban }, training: { groupSize: ${groupSize} } }`,
    )
    return await measureLengths(config, environment(actions), counter, new AbortController().signal)
  }

  it("are the first prompt once per group where no actions are listed", async () => {
    // An episode has the prompts "user 1" and "user 1 a": three different tokens in a tree, of which the group has two in common.
    expect(await measured(1)).toMatchObject({ steps: 2, promptTokens: 2.5, newTokens: (1 + 16 * 2) / 32 })
    expect(await measured(8)).toMatchObject({ promptTokens: 2.5, newTokens: (1 + 16 * 2 - (7 / 8) * 17) / 32 })
  })

  it("are those of a group whose actions are random where they are listed", async () => {
    // Two groups of one: "user", two tasks and an action each. Of eight with one action: the same, in eight times as many prompts.
    expect(await measured(1, ["a"])).toMatchObject({ promptTokens: 2.5, newTokens: (2.5 * 5) / 10 })
    expect(await measured(8, ["a"])).toMatchObject({ promptTokens: 2.5, newTokens: (2.5 * 5) / 80 })
    // Two actions make at most one token more in each group.
    const { newTokens } = await measured(8, ["a", "b"])
    expect(newTokens).toBe((2.5 * 7) / 80)
  })
})

describe("the whole run", () => {
  const of = (training: string) =>
    resolveConfig(`{ model: m, environment: { name: sokoban }, training: { ${training} } }`)

  it("includes evaluations before the first iteration, every n and after the last, and the checkpoints", () => {
    const config = of("iterations: 10, checkpointEvery: 4, evaluation: { every: 4, tasks: 7 }")
    expect(wholeRun(config.training)).toEqual({ iterations: 10, evaluations: 4, evaluationEpisodes: 7, checkpoints: 3 })
    expect(wholeRun(of("iterations: 8, evaluation: { every: 4 }").training).evaluations).toBe(3)
    expect(wholeRun(of("iterations: 8").training)).toMatchObject({ evaluations: 0, checkpoints: 1 })
  })

  it("includes the newest checkpoints, the best, and the one being written", () => {
    const config = of("iterations: 100, checkpointEvery: 10, keepCheckpoints: 3, evaluation: { every: 10 }")
    const use = diskUse(config.training, 1000, 300, 20)
    expect(use).toMatchObject({ checkpoint: 1000, checkpointsAtOnce: 5, model: 300 })
    expect(use.total).toBe(5320 + use.metrics)
    const once = of("iterations: 10")
    expect(diskUse(once.training, 1000, 300, 20).checkpointsAtOnce).toBe(1)
    const unjudged = of("iterations: 100, checkpointEvery: 10")
    expect(diskUse(unjudged.training, 1000, 300, 20).checkpointsAtOnce).toBe(3)
  })

  it("includes recorded episodes as configured", () => {
    const lengths = { steps: 10, promptTokens: 100, completionTokens: 20, source: "as given" }
    const started = "model: m, environment: sokoban, training: { iterations: 20, groups: 4 }"
    const bytes = (episodes: string) => recordedBytes(resolveConfig(`{ ${started}, recording: ${episodes} }`), lengths)
    const all = bytes("{}")
    expect(bytes("{ every: 0 }")).toBe(0)
    expect(bytes("{ every: 5 }")).toBe(all / 5)
    expect(bytes("{ keep: 2 }")).toBe(all / 10)
    expect(bytes("{ groups: 1 }")).toBeLessThan(all / 3)
    expect(bytes("{ groups: 9 }")).toBe(all)
  })

  it("measures the disk of the run, and leaves nothing there", async () => {
    const folder = await mkdtemp(join(tmpdir(), "gigpo-disk-"))
    try {
      expect(await measureDisk(join(folder, "not/yet/there"))).toBeGreaterThan(0)
      expect(await readdir(folder)).toEqual([])
      await writeFile(join(folder, "file"), "")
      expect(await measureDisk(join(folder, "file/run"))).toBeUndefined()
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe("the cards", () => {
  it.each([
    ["NVIDIA A100-SXM4-80GB", "A100"],
    ["NVIDIA H100 80GB HBM3", "H100"],
    ["NVIDIA H100 PCIe", "H100 PCIe"],
    ["NVIDIA H200", "H200"],
    ["NVIDIA B200", "B200"],
    ["NVIDIA GeForce RTX 4090", "RTX 4090"],
    ["NVIDIA L40S", "L40S"],
    ["h100", "H100"],
    ["NVIDIA L40", undefined],
    ["NVIDIA A10G", undefined],
    ["Tesla T4", undefined],
  ])("know %s as %s", (name, wanted) => {
    expect(findCard(name)?.name).toBe(wanted)
  })

  it("say which there are", () => {
    expect(requireCard("a100")).toMatchObject({ bfloat16: 312e12, bandwidth: 2.04e12 })
    expect(() => requireCard("TPU")).toThrow(/The card "TPU" is unknown; choose one of B200, .*RTX 4090/)
    for (const { bfloat16, float32 } of cards) expect(bfloat16).toBeGreaterThan(float32)
  })
})

describe.skipIf(!built)("gigpo estimate", () => {
  let folder: string
  const run = (words: readonly string[]) => gigpo(words, { cwd: folder })
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-estimate-"))
    expect(await run(["init", "sokoban", "small", ...tiny])).toMatchObject({ code: 0 })
  })
  afterAll(async () => await rm(folder, { recursive: true }))
  const config = "small/config.yaml"

  it("measures the CPU and the environment", async () => {
    const { code, stdout } = await run(["estimate", config])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^memory on cpu, float32\n {2}weights .*together .*; available: /)
    expect(stdout).toMatch(/6 episodes of .* steps, .* \(measured on 16 episodes of the expert/)
    expect(stdout).toMatch(/about .* on this CPU, at the rates measured in a short test/)
    expect(stdout).toMatch(/^ {4}optimizer /m)
    expect(stdout).not.toContain("at least")
  })

  it("tells floors of a GPU that is not there, and calls an assumption one", async () => {
    const words = [
      "--prompt-tokens",
      "400",
      "--completion-tokens",
      "50",
      "--steps",
      "10",
      "--set",
      "maxPositions=512",
      "--set",
      "training.epochs=1",
    ]
    const { code, stdout } = await run(["estimate", config, "--gpu", "h100", ...words, "--mfu", "50"])
    expect(code).toBe(0)
    expect(stdout).toMatch(/memory on cuda, bfloat16\n.*available: 80\.0 GB/)
    expect(stdout).toMatch(/at least .* on H100 by its datasheet.*at an assumed 50 % of that \(not measured\)/)
    expect(stdout).toMatch(/tokens: 24,000 prefilled, 3,000 sampled, 27,000 trained/)
    const json = JSON.parse((await run(["estimate", config, "--gpu", "h100", ...words, "--json"])).stdout)
    const [time] = json.times
    expect(time).toMatchObject({ name: "H100", source: "datasheet", assumedPeakPercent: 40 })
    expect(time.assumedSeconds / time.floorSeconds).toBeCloseTo(2.5, 6)
    expect(json.parts.map((one: { name: string }) => one.name)).toEqual(["prefill", "decode", "training", "optimizer"])
    const two = ["--gpu", "h100", "--device", "cuda:0,1", ...words]
    expect((await run(["estimate", config, ...two])).stdout).toMatch(/memory on each of 2 GPUs, bfloat16\n.*: 80\.0 GB/)
    const half = JSON.parse((await run(["estimate", config, ...two, "--json"])).stdout)
    expect(half.devices).toBe(2)
    expect(half.times[0].name).toBe("2 × H100")
    expect(time.floorSeconds / half.times[0].floorSeconds).toBeCloseTo(2, 6)
    const all = await run(["estimate", config, "--device", "cuda", ...words])
    for (const { name } of cards) expect(all.stdout).toContain(`on ${name} by its datasheet`)
  })

  it("tells what the whole run and the cloning before it come to", async () => {
    const { stdout } = await run(["estimate", config])
    expect(stdout).toMatch(
      /^the whole run\n {2}6 iterations, 3 evaluations of 4 episodes, 3 checkpoints; the time of the environment not counted\n {2}about .* on this CPU\n {2}disk: up to .*: 4 checkpoints of .*, the model of .* of metrics\nsupervised fine-tuning before it\n {2}2 epochs of \d+ steps, from 10 tasks; plus about .* of the expert\n {2}about .* on this CPU\n {2}disk: a model of /m,
    )
    const words = ["--prompt-tokens", "40", "--completion-tokens", "5", "--steps", "10", "--gpu", "h100"]
    const far = await run(["estimate", config, ...words])
    expect(far.stdout).toMatch(
      /3 checkpoints; the time of the environment and of writing checkpoints not counted\n {2}at least .* on H100, at 40 % of its peak /,
    )
    await writeFile(join(folder, "plain.yaml"), "model: small/model\nenvironment: { name: sokoban }\n")
    const plain = await run(["estimate", "plain.yaml", ...words, "--set", "training.rollout.maxCompletionTokens=8"])
    expect(plain.stdout).toContain("  150 iterations, 6 checkpoints; ")
    expect(plain.stdout).not.toContain("fine-tuning")
  })

  it("predicts what a run then does and takes", async () => {
    const { run: whole, disk, times } = JSON.parse((await run(["estimate", config, "--json"])).stdout)
    expect(times[0]).toMatchObject({ run: { seconds: expect.any(Number) }, cloning: { seconds: expect.any(Number) } })
    expect(times[0].run.seconds).toBeGreaterThan(6 * times[0].seconds)
    expect(await run(["train", config])).toMatchObject({ code: 0 })
    const log = (await readFile(join(folder, "small/run/metrics.jsonl"), "utf8")).trim().split("\n")
    const evaluations = log.map((line) => JSON.parse(line).evaluation).filter((one) => one !== undefined)
    expect(evaluations.map(({ episodes }) => episodes)).toEqual(Array(whole.evaluations).fill(whole.evaluationEpisodes))
    const bytes = async (file: string) => (await stat(join(folder, "small/run", file))).size
    expect(await bytes("metrics.jsonl")).toBeLessThan(disk.metrics)
    const tensors = ["checkpoints/iteration-6/model.safetensors", "checkpoints/iteration-6/optimizer/model.safetensors"]
    const checkpoint = (await Promise.all(tensors.map(bytes))).reduce((sum, size) => sum + size)
    // The files have headers besides, some hundred bytes a tensor.
    expect(checkpoint - disk.checkpoint).toBeGreaterThan(0)
    expect(checkpoint - disk.checkpoint).toBeLessThan(0.1 * disk.checkpoint)
    expect((await bytes("model/model.safetensors")) - disk.model).toBeLessThan(0.1 * disk.model)
    const recorded = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => bytes(`episodes/iteration-${n}.episodes`)))
    const episodes = recorded.reduce((sum, size) => sum + size)
    expect(episodes).toBeGreaterThan(disk.episodes / 3)
    expect(episodes).toBeLessThan(disk.episodes * 3)
  })

  it("ends with 3 and the settings that would fit where memory does not suffice", async () => {
    const words = ["--prompt-tokens", "9", "--completion-tokens", "9", "--steps", "9"]
    const { code, stdout } = await run(["estimate", config, "--device", "cuda", "--memory", "5MB", ...words])
    expect(code).toBe(3)
    expect(stdout).toMatch(/available: 0\.0 GB\n {2}It does not fit\. This needs .*are free\./)
  })

  it.each([
    [["--memory", "much"], /size of at least a megabyte/],
    [["--gpu", "abacus"], /The card "abacus" is unknown/],
    [["--mfu", "0"], /above 0 and at most 100/],
    [["--device", "tpu"], /must be "auto", "cpu", "cuda"/],
    [["--steps", "-1"], /must be a number above 0/],
  ])("rejects %j with exit code 2", async (words, message) => {
    const { code, stderr } = await run(["estimate", config, ...words])
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) })
  })
})
