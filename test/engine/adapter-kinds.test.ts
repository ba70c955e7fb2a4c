import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import type { AdamWParameters } from "../../src/engine/engine.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { type Sequence, stepSequence } from "../../src/engine/sequence.ts"
import { openSafetensors } from "../../src/model-files/safetensors.ts"
import { Random } from "../../src/util/random.ts"
import { byRow } from "./by-row.ts"
import { crossEntropy, modelPath, readTensors, relativeError } from "./fixtures.ts"

// Adapters of every kind that PEFT saves, and what PEFT computes with them: scripts/fixtures/make_adapter_kinds.py.

const root = fileURLToPath(new URL("../fixtures/adapter-kinds", import.meta.url))
const kinds = readdirSync(root)

/** Log-probabilities are float32: 1e-5 is their rounding after a few layers. */
const logProbError = 1e-5
const gradientError = 1e-4

interface Cloning {
  readonly rows: readonly { readonly prompt: number[]; readonly completion: number[] }[]
  readonly logProbs: readonly number[][]
  readonly after: readonly number[][]
  readonly step: AdamWParameters
  readonly losses: readonly number[]
  readonly gradientNorms: readonly number[]
}

const saved = await mkdtemp(join(tmpdir(), "gigpo-kinds-"))
afterAll(() => rm(saved, { recursive: true }))

describe.each(kinds)("a PEFT adapter of kind %s", (kind) => {
  const folder = join(root, kind)
  const expected: Cloning = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8"))
  const config = JSON.parse(readFileSync(join(folder, "adapter_config.json"), "utf8"))
  const base = modelPath(config.base_model_name_or_path)
  const gradients = readTensors(join(folder, "expected.safetensors"))
  const rows: Sequence[] = expected.rows.map(({ prompt, completion }) =>
    stepSequence(Int32Array.from(prompt), Int32Array.from(completion), {}),
  )
  let policy: NativePolicy
  beforeAll(async () => {
    vi.spyOn(process, "emitWarning").mockImplementation(() => {})
    policy = await NativePolicy.open(folder, { base })
  })
  afterAll(async () => {
    await policy.dispose()
    vi.restoreAllMocks()
  })

  const logProbs = async (of: NativePolicy) =>
    byRow(rows, await of.logProbs(rows)).map((row) => Array.from(row.logProbs))
  const worst = (found: readonly number[][], wanted: readonly (readonly number[])[]) =>
    Math.max(...found.flatMap((row, i) => row.map((value, j) => Math.abs(value - wanted[i]![j]!))))

  it("computes the expected log-probabilities", async () => {
    expect(worst(await logProbs(policy), expected.logProbs)).toBeLessThan(logProbError)
  })

  it("computes them after merging", async () => {
    await policy.save(join(saved, "merged", kind))
    await using merged = await NativePolicy.open(join(saved, "merged", kind))
    expect(worst(await logProbs(merged), expected.logProbs)).toBeLessThan(logProbError)
    await writeFile(
      join(saved, "merged", kind, "log-probs.json"),
      JSON.stringify({ ...said(), base: join(saved, "merged", kind), logProbs: await logProbs(merged) }),
    )
  })

  // The log-probabilities of sampled tokens come from the generator's own path.
  it("is used in sampling", async () => {
    const prompt = Int32Array.from(expected.rows[3]!.prompt)
    const { tokens, logProbs: sampled } = await policy.sample({ prompt, maxTokens: 12, stopTokens: [], key: [3, 4] })
    const [again] = byRow([stepSequence(prompt, tokens, {})], await policy.logProbs([stepSequence(prompt, tokens, {})]))
    expect(worst([Array.from(sampled)], [Array.from(again!.logProbs)])).toBeLessThan(logProbError)
  })

  it("computes the gradient of all trained parameters", async () => {
    await policy.forwardBackward(rows, crossEntropy)
    expect(gradients.size).toBeGreaterThan(0)
    for (const [name, wanted] of gradients)
      expect(relativeError(await policy.tensor(name, "gradients"), wanted), name).toBeLessThan(gradientError)
    await policy.clearGradients()
  })

  it("is updated as by PEFT, and leaves the model unchanged", async () => {
    const frozen = await policy.tensor("model.layers.1.self_attn.q_proj.weight")
    const embedding = await policy.tensor("model.embed_tokens.weight")
    for (const [i, loss] of expected.losses.entries()) {
      expect((await policy.forwardBackward(rows, crossEntropy)).loss).toBeCloseTo(loss, 4)
      const { gradientNorm } = await policy.optimizerStep(expected.step)
      expect(gradientNorm / expected.gradientNorms[i]!).toBeCloseTo(1, 3)
    }
    expect(worst(await logProbs(policy), expected.after)).toBeLessThan(1e-3)
    expect(await policy.tensor("model.layers.1.self_attn.q_proj.weight")).toEqual(frozen)
    expect(await policy.tensor("model.embed_tokens.weight")).toEqual(embedding)
  })

  const said = () => ({ base, rows: expected.rows })

  it("is saved as by PEFT, and can be opened again", async () => {
    const own = join(saved, "adapters", kind)
    await policy.saveAdapter(own)
    const written = JSON.parse(await readFile(join(own, "adapter_config.json"), "utf8"))
    const { modules_to_save: _, ...rest } = config
    expect({ ...written, target_modules: [...new Set(written.target_modules)].sort() }).toMatchObject({
      ...rest,
      base_model_name_or_path: config.base_model_name_or_path,
      target_modules: [...new Set(rest.target_modules)].sort(),
      ...(kind === "all-linear" && { target_modules: expect.anything() }),
    })
    const names = await Promise.all(
      [own, folder].map(async (directory) => {
        const files = await openSafetensors(directory, "adapter_model.safetensors")
        await files.close()
        return [...files.names].sort()
      }),
    )
    expect(names[0]).toEqual(names[1])
    await using again = await NativePolicy.open(own) // the file says where the model was
    expect(await logProbs(again)).toEqual(await logProbs(policy))
    expect(again.lora).toEqual(policy.lora)
    await writeFile(join(own, "log-probs.json"), JSON.stringify({ ...said(), logProbs: await logProbs(policy) }))
  })

  it("continues from a checkpoint as without interruption", async () => {
    const checkpoint = join(saved, "checkpoints", kind)
    const handle = await policy.store.checkpoint(checkpoint)
    await using again = await NativePolicy.open(base, { lora: policy.lora! })
    await again.store.restore(handle, checkpoint)
    for (const one of [policy, again]) {
      await one.forwardBackward(rows, crossEntropy)
      await one.optimizerStep(expected.step)
    }
    expect(await logProbs(again)).toEqual(await logProbs(policy))
  })

  it("supports a critic and a reference policy", async () => {
    await using trained = await NativePolicy.open(folder, { base, critic: true, reference: true })
    await trained.reference.freeze()
    const critic = await trained.critic()
    const before = await logProbs(trained)
    await trained.forwardBackward(rows, crossEntropy)
    await trained.optimizerStep(expected.step)
    const reference = byRow(rows, await trained.logProbs(rows, { model: "reference" })).map((row) =>
      Array.from(row.logProbs),
    )
    expect(worst(reference, before)).toBe(0)
    const handle = await critic.store.checkpoint(join(saved, "critics", kind))
    await critic.store.restore(handle, join(saved, "critics", kind))
    await critic.store.save(join(saved, "critic-models", kind))
  })
})

// The reference itself: GIGPO_PEFT is a Python that has torch, transformers and peft.
it.skipIf(process.env.GIGPO_PEFT === undefined)(
  "a saved adapter gives the same results in PEFT",
  () => {
    for (const which of ["adapters", "merged"]) {
      const script = fileURLToPath(new URL("../../scripts/fixtures/check_adapters.py", import.meta.url))
      const found = execFileSync(process.env.GIGPO_PEFT!, [script, join(saved, which)], { encoding: "utf8" })
      const errors: Record<string, number> = JSON.parse(found.trim().split("\n").at(-1)!)
      console.log(which, errors)
      expect(Object.keys(errors).sort()).toEqual([...kinds].sort())
      for (const [kind, error] of Object.entries(errors)) expect(error, kind).toBeLessThan(logProbError)
    }
  },
  300_000,
)

describe("an adapter created here", () => {
  it.each([
    ["qwen3", { rank: 2, targetModules: ["q_proj", "v_proj"], modulesToSave: ["embed_tokens", "lm_head"] }],
    ["qwen3", { rank: 2, targetModules: "all-linear", modulesToSave: ["embed_tokens"], ensureWeightTying: true }],
    ["llama", { rank: 2, useRslora: true, rankPattern: { "mlp.*": 3 }, alphaPattern: { q_proj: 1 } }],
    ["qwen2-untied", { rank: 2, excludeModules: ["mlp.up_proj"], layersToTransform: [0], modulesToSave: ["norm"] }],
  ])("beside %s as %j starts as the model, and is opened again as it is", async (name, lora) => {
    const tokens = Int32Array.of(3, 1, 4, 1, 5)
    await using plain = await NativePolicy.open(modelPath(name))
    await using policy = await NativePolicy.open(modelPath(name), { lora })
    expect(await policy.logits(tokens)).toEqual(await plain.logits(tokens))
    const folder = join(saved, `made-${new Random(1).derive(JSON.stringify(lora)).key.join("-")}`)
    await policy.saveAdapter(folder)
    await using again = await NativePolicy.open(folder)
    expect(again.lora).toEqual(policy.lora)
    expect(await again.logits(tokens)).toEqual(await policy.logits(tokens))
  })

  it.each<[object, RegExp]>([
    [{ targetModules: ["q_prj"] }, /the model has no module "q_prj"; use q_proj/],
    [{ targetModules: ["lm_head"] }, /matches "lm_head"/],
    [{ targetModules: "x(" }, /target_modules holds a regular expression that is not supported/],
    [{ targetModules: ".*_proj", layersToTransform: [0] }, /layersToTransform cannot be combined/],
    [{ layersToTransform: [2] }, /contains 2, but the last layer of the model is 1/],
    [{ modulesToSave: ["head_of_lm"] }, /the model has no module "head_of_lm"/],
    [{ rankPattern: { q_proj: 0 } }, /rankPattern/],
    [{ targetModules: [] }, /targetModules/],
    [{ useDora: true }, /useDora/],
  ])("is rejected with %j", async (lora, message) => {
    const refused = { code: "BAD_ARGUMENT", message: expect.stringMatching(message) }
    await expect(NativePolicy.open(modelPath("qwen3"), { lora: { rank: 2, ...lora } })).rejects.toMatchObject(refused)
  })
})
