import { createHash } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { readImageProcessor } from "../../src/image-processor/read.ts"
import { pattern } from "../images/pattern.ts"

interface Case {
  readonly config: Readonly<Record<string, unknown>>
  readonly width: number
  readonly height: number
  readonly grid: number[]
  readonly text: string
  readonly shape: number[]
  readonly sha256: string
  readonly every: number
  readonly values: number[]
}

const cases = JSON.parse(readFileSync("test/fixtures/images/processors.json", "utf8")) as Record<
  "qwen" | "smolvlm",
  Case[]
>
const folder = mkdtempSync(join(tmpdir(), "gigpo-image-processor-"))
afterAll(() => rmSync(folder, { recursive: true }))

async function processorOf(config: object, whole: object = {}) {
  writeFileSync(join(folder, "preprocessor_config.json"), JSON.stringify(config))
  writeFileSync(join(folder, "processor_config.json"), JSON.stringify(whole))
  return (await readImageProcessor(folder))!
}

function checkValues(patches: Float32Array, { shape, sha256, every, values }: Case) {
  expect(patches.length).toBe(shape.reduce((product, size) => product * size, 1))
  for (const [i, value] of values.entries()) expect(Math.abs(patches[i * every]! - value)).toBeLessThanOrEqual(1e-5)
  const bytes = new Uint8Array(patches.buffer)
  expect(createHash("sha256").update(bytes).digest("hex")).toBe(sha256)
}

const named = (one: Case) => ({ ...one, settings: JSON.stringify(one.config).slice(0, 400) })

it.each(cases.qwen.map(named))("Qwen2.5-VL: $width × $height gives transformers' patches ($settings)", async (one) => {
  const processor = await processorOf(one.config)
  const { image, text } = processor.prepare(pattern(one.width, one.height))
  expect(image.grid).toEqual(one.grid)
  checkValues(image.patches, one)
  expect(text).toBe("<|image_pad|>".repeat((one.grid[1]! * one.grid[2]!) / 4))
})

it.each(cases.smolvlm.map(named))("SmolVLM: $width × $height gives transformers' tiles ($settings)", async (one) => {
  const processor = await processorOf(one.config, { image_seq_len: 3 })
  const { image, text } = processor.prepare(pattern(one.width, one.height))
  expect(image.grid).toEqual([one.shape[0], 1, 1])
  checkValues(image.patches, one)
  expect(text).toBe(one.text)
})

it("equal images have equal hashes, and others other ones", async () => {
  const processor = await processorOf({ image_processor_type: "Qwen2VLImageProcessorFast" })
  const hash = (width: number) => processor.prepare(pattern(width, 60)).image.hash
  expect(hash(60)).toBe(hash(60))
  expect(hash(60)).not.toBe(hash(200))
  const other = pattern(60, 60)
  other.data[300]! ^= 128
  expect(processor.prepare(other).image.hash).not.toBe(hash(60))
  const wide = await processorOf({ image_processor_type: "Qwen2VLImageProcessor", image_mean: [0.5, 0.5, 0.5] })
  expect(wide.prepare(pattern(60, 60)).image.hash).not.toBe(hash(60))
})

it("takes the settings that transformers 5 nests, and those in size", async () => {
  const nested = { image_processor_type: "Qwen2VLImageProcessor", size: { shortest_edge: 3136, longest_edge: 50176 } }
  const processor = await processorOf({ image_processor_type: "SmolVLMImageProcessor" }, { image_processor: nested })
  const expected = cases.qwen.find(({ config }) => config.max_pixels === 50176)!
  expect(processor.prepare(pattern(640, 480)).image.grid).toEqual(expected.grid)
})

it("a folder without an image processor reads text only", async () => {
  const empty = mkdtempSync(join(tmpdir(), "gigpo-image-processor-"))
  expect(await readImageProcessor(empty)).toBeUndefined()
  writeFileSync(join(empty, "processor_config.json"), "{")
  await expect(readImageProcessor(empty)).rejects.toMatchObject({ code: "BAD_MODEL" })
  rmSync(empty, { recursive: true })
})

it.each([
  [
    { image_processor_type: "CLIPImageProcessor" },
    /image_processor_type is "CLIPImageProcessor"; supported are Qwen2VL/,
  ],
  [{}, /image_processor_type/],
  [{ image_processor_type: "Qwen2VLImageProcessor", do_resize: false }, /do_resize is false/],
  [{ image_processor_type: "Qwen2VLImageProcessor", resample: 0 }, /resample is 0; supported are 1/],
  [{ image_processor_type: "Qwen2VLImageProcessor", patch_size: 1e6 }, /patch_size is 1000000; it must be/],
  [{ image_processor_type: "Qwen2VLImageProcessor", min_pixels: 9, max_pixels: 4 }, /min_pixels 9 is more than/],
  [{ image_processor_type: "Qwen2VLImageProcessor", image_std: [1, 0, 1] }, /image_std must be a list of three/],
  [{ image_processor_type: "Idefics3ImageProcessor", size: 5 }, /size is 5; it must be an object/],
])("rejects the settings %j", async (config, message) => {
  await expect(processorOf(config)).rejects.toMatchObject({
    code: "BAD_MODEL",
    message: expect.stringMatching(message),
  })
})

it("rejects an image of which one side is more than 200 times the other", async () => {
  const processor = await processorOf({ image_processor_type: "Qwen2VLImageProcessor" })
  expect(() => processor.prepare(pattern(2010, 10))).toThrow(/one side may be at most 200 times the other; crop it/)
})
