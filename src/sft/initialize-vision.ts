import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { qwenImageMarks } from "../image-processor/marks.ts"
import type { EncodedImage } from "../images/image.ts"
import type { ModelConfig } from "../model-files/model-config.ts"
import { writeModelConfig } from "../model-files/write-config.ts"
import type { NativeVision } from "../native/model.ts"
import type { ResolvedOf } from "../options/table.ts"
import type { Tokenizer } from "../tokenizer/tokenizer.ts"
import { type ByteLevelBpe, chatMlTokens, type TrainTokenizerOptions } from "../tokenizer/train.ts"
import { chatMlImageTemplate, writeTokenizer } from "../tokenizer/write.ts"
import { GigpoError } from "../util/errors.ts"
import type { visionFields } from "./initialize-options.ts"

export type VisionOptions = ResolvedOf<typeof visionFields>

/** Special tokens of a tokenizer for prompts with images. */
const imageChatTokens: readonly string[] = [...chatMlTokens, ...Object.values(qwenImageMarks)]

/** Frames of a patch and patches along a side of a feature, as in every model of Qwen2.5-VL. */
const [frames, merge] = [2, 2]

/** Throws `BAD_ARGUMENT` for sizes that do not fit together. */
export function checkVisionOptions({ hiddenSize, heads, patchSize, pixels }: VisionOptions): void {
  const fail = (what: string) => new GigpoError("BAD_ARGUMENT", `vision: ${what}.`)
  if (hiddenSize % (4 * heads) !== 0)
    throw fail(`hiddenSize (${hiddenSize}) must be a multiple of 4 × heads (${heads})`)
  if (pixels < (merge * patchSize) ** 2)
    throw fail(`pixels is ${pixels}; one feature covers ${(merge * patchSize) ** 2} pixels, for patchSize ${patchSize}`)
}

/** Vision tower of a new model. All its blocks have full attention, since a small image is a single window. */
export function newTower(
  { hiddenSize, layers, heads, patchSize, pixels }: VisionOptions,
  headSize: number,
  imageToken: number,
): NativeVision {
  // A quarter of the rotary pairs turns by the frame, the rest by row and column, as in Qwen2.5-VL (16, 24 and 24 of 64).
  const pairs = headSize / 2
  const ofSide = Math.floor((3 * pairs) / 8)
  return {
    kind: "qwen2.5-vl",
    hiddenSize,
    intermediateSize: 3 * hiddenSize,
    layers,
    heads,
    channels: 3,
    patchSize,
    frames,
    merge,
    window: Math.ceil(Math.sqrt(pixels) / (merge * patchSize)),
    fullLayers: Array.from({ length: layers }, (_, layer) => layer),
    epsilon: 1e-6,
    imageToken,
    sections: [pairs - 2 * ofSide, ofSide, ofSide],
  }
}

/** Special tokens of the tokenizer of a vision-language model; of a language model the default ones. */
export function specialsOf(vision: VisionOptions | undefined): Pick<TrainTokenizerOptions, "specialTokens"> {
  return vision ? { specialTokens: imageChatTokens } : {}
}

/** Writes tokenizer and chat template, and for a vision-language model the settings of its image processor. */
export async function writeTokenizerFiles(
  directory: string,
  bpe: ByteLevelBpe,
  vision: VisionOptions | undefined,
): Promise<void> {
  await writeTokenizer(directory, bpe, vision ? { chatTemplate: chatMlImageTemplate } : {})
  if (vision) await writeImageProcessor(directory, vision)
}

/** Writes preprocessor_config.json. Channels are scaled to -1 … 1. */
async function writeImageProcessor(directory: string, { patchSize, pixels }: VisionOptions): Promise<void> {
  const half = [0.5, 0.5, 0.5]
  const least = (merge * patchSize) ** 2
  const processor = {
    image_processor_type: "Qwen2VLImageProcessor",
    do_resize: true,
    ...{ do_rescale: true, rescale_factor: 1 / 255, resample: 3 },
    ...{ do_normalize: true, image_mean: half, image_std: half },
    ...{ patch_size: patchSize, temporal_patch_size: frames, merge_size: merge },
    ...{ min_pixels: least, max_pixels: pixels, size: { shortest_edge: least, longest_edge: pixels } },
  }
  await writeFile(join(directory, "preprocessor_config.json"), `${JSON.stringify(processor, null, 2)}\n`)
}

/** Writes config.json with the ids of the marks around images and of the end, in whose place transformers would assume Qwen's. */
export async function writeImageIds(directory: string, config: ModelConfig, tokenizer: Tokenizer): Promise<void> {
  const idOf = (mark: string) => tokenizer.encode(mark)[0]
  const { start, end } = qwenImageMarks
  const original = {
    ...{ vision_start_token_id: idOf(start), vision_end_token_id: idOf(end) },
    text_config: { bos_token_id: null, eos_token_id: tokenizer.eosTokens[0] },
  }
  await writeModelConfig(directory, config, { dtype: "F32", original })
}

/** Number of the image tokens that a tokenizer writes for images. */
export async function countImageTokens(tokenizer: Tokenizer, images: readonly EncodedImage[]): Promise<number> {
  if (images.length === 0) return 0
  const known = await tokenizer.images()
  const texts = await Promise.all(images.map(async (image) => (await known!.prepare(image)).text))
  return texts.join("").split(qwenImageMarks.pad).length - 1
}
