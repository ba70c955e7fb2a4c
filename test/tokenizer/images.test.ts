import { writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { describe, expect, it } from "vitest"
import { imagePlace, messageOf } from "../../src/environment/picture.ts"
import { PreparedImages } from "../../src/image-processor/prepared-images.ts"
import type { ImageProcessor } from "../../src/image-processor/processor.ts"
import { readImageProcessor } from "../../src/image-processor/read.ts"
import { decodeImage } from "../../src/images/decode.ts"
import type { EncodedImage } from "../../src/images/image.ts"
import { encodePng } from "../../src/images/png.ts"
import type { ModelImage } from "../../src/native/model.ts"
import type { ChatMessage, Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { pattern } from "../images/pattern.ts"
import { edit, open, tokenizerFolder } from "./scratch.ts"
import { chatMl } from "./templates.ts"
import { listsOrStrings, visionFolder, visionModels } from "./vision-folder.ts"

const image = async (width: number, height: number) => await encodePng(pattern(width, height))
const user = (...parts: (string | EncodedImage)[]): ChatMessage => messageOf("user", parts)

async function inputOf(tokenizer: Tokenizer, { bytes }: EncodedImage): Promise<ModelImage> {
  return (await readImageProcessor(tokenizer.directory))!.prepare(await decodeImage(bytes)).image
}

async function openModel(name: keyof typeof visionModels): Promise<Tokenizer> {
  return await open(await visionFolder(name))
}

describe("images in chats", () => {
  it("Qwen2.5-VL: an image is as many image tokens as the tower makes features", async () => {
    const tokenizer = await openModel("Qwen2.5-VL")
    const [small, wide] = [await image(60, 60), await image(120, 60)]
    const { tokens, attachments } = await tokenizer.encodeChat([
      { role: "system", content: "Play." },
      user("Look: ", small, " and ", wide, "?"),
    ])
    const marked = (count: number) => `<|vision_start|>${"<|image_pad|>".repeat(count)}<|vision_end|>`
    const text = `<|im_start|>system\nPlay.<|im_end|>\n<|im_start|>user\nLook: ${marked(4)} and ${marked(8)}?<|im_end|>\n<|im_start|>assistant\n`
    expect([...tokens]).toEqual([...tokenizer.encode(text)])
    expect((attachments as ModelImage[]).map(({ grid, hash }) => [grid, hash])).toEqual([
      [[1, 4, 4], (await inputOf(tokenizer, small)).hash],
      [[1, 4, 8], (await inputOf(tokenizer, wide)).hash],
    ])
  })

  it("SmolVLM: tiles have their marks, and chats without images have lists too", async () => {
    const tokenizer = await openModel("SmolVLM")
    const { tokens, attachments } = await tokenizer.encodeChat([user(await image(64, 32), "Where?")])
    const four = "<image>".repeat(4)
    const around = "<fake_token_around_image>"
    const text = `User:${around}<row_1_col_1>${four}${around}<row_1_col_2>${four}\n\n${around}<global-img>${four}${around}Where?<|im_end|>\nAssistant:`
    expect([...tokens]).toEqual([...tokenizer.encode(text)])
    expect((attachments as ModelImage[]).map(({ grid }) => grid)).toEqual([[3, 1, 1]])
    const plain = await tokenizer.encodeChat([user("Where?")])
    expect([...plain.tokens]).toEqual([...tokenizer.encode("User: Where?<|im_end|>\nAssistant:")])
    expect(plain.attachments).toBeUndefined()
  })

  it.each(["Qwen2.5-VL", "SmolVLM"] as const)("%s: text that looks like an image stays text", async (name) => {
    const tokenizer = await openModel(name)
    const written = `<|image_pad|> <image> <|vision_start|> <global-img> ${imagePlace}`
    const { tokens, attachments } = await tokenizer.encodeChat([user("a", await image(30, 30)), user(written)])
    expect(attachments).toHaveLength(1)
    const marks = new Set(visionModels[name].marks)
    const others = await tokenizer.encodeChat([user("a", await image(30, 30)), user("x")])
    const count = (all: Int32Array) => [...all].filter((id) => marks.has(tokenizer.decode([id]))).length
    expect(count(tokens)).toBe(count(others.tokens))
    expect(tokenizer.decode(tokens)).toContain(written)
  })

  it("the template of chat_template.json comes before that of tokenizer_config.json, and is copied with the image processor", async () => {
    const directory = await visionFolder("Qwen2.5-VL")
    edit(join(directory, "tokenizer_config.json"), (config) => Object.assign(config, { chat_template: chatMl }))
    writeFileSync(join(directory, "chat_template.json"), JSON.stringify({ chat_template: listsOrStrings }))
    const tokenizer = await open(directory)
    expect((await tokenizer.encodeChat([user("x", await image(30, 30))])).attachments).toHaveLength(1)
    const names = tokenizer.files.map((file) => basename(file))
    expect(names).toEqual(expect.arrayContaining(["chat_template.json", "preprocessor_config.json"]))
  })

  it("equal files are prepared once, and share their memory", async () => {
    const tokenizer = await openModel("Qwen2.5-VL")
    const [one, other] = [await image(60, 60), await image(60, 61)]
    const inputs = async (...images: EncodedImage[]) => (await tokenizer.encodeChat([user(...images)])).attachments!
    const [first, second] = await inputs(one, { ...one, bytes: one.bytes.slice() })
    expect(second).toBe(first)
    const [again, different] = await inputs(one, other)
    expect(again).toBe(first)
    expect(different).not.toBe(first)
  })

  it("a text-only model rejects images before anything is sampled", async () => {
    const directory = await tokenizerFolder()
    edit(join(directory, "tokenizer_config.json"), (config) => Object.assign(config, { chat_template: chatMl }))
    const tokenizer = await open(directory)
    const error = await tokenizer.encodeChat([user(await image(9, 9))]).catch((error) => error)
    expect(error).toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(/is a text-only model .*observation: "text"/),
    })
  })

  it("names a corrupt image, a message without the place of an image, and a template that leaves images out", async () => {
    const tokenizer = await openModel("Qwen2.5-VL")
    const one = await image(9, 9)
    const corrupt = { ...one, bytes: one.bytes.subarray(0, 60) }
    await expect(tokenizer.encodeChat([user(corrupt)])).rejects.toMatchObject({ code: "BAD_DATA" })
    const unmarked = { role: "user", content: "x", images: [one] }
    await expect(tokenizer.encodeChat([unmarked])).rejects.toThrow(/messages\[0\]: .*marks 0 places/)
    edit(join(tokenizer.directory, "tokenizer_config.json"), (config) => {
      config.chat_template = listsOrStrings.replace("<|image_pad|>", "")
    })
    const silent = await open(tokenizer.directory)
    await expect(silent.encodeChat([user("x", one)])).rejects.toThrow(/wrote 0 places for 1 images/)
  })
})

describe("prepared images", () => {
  const image = (seed: number): EncodedImage => ({ mediaType: "image/png", bytes: Uint8Array.of(seed) })

  it("the least recently used ones are dropped beyond the limit, and a failure is not kept", async () => {
    let prepared = 0
    const processor: ImageProcessor = {
      placeholder: "<image>",
      prepare: () => {
        prepared++
        return { image: {} as ModelImage, text: "", bytes: 40 }
      },
    }
    const images = new PreparedImages(processor, 100)
    const files = await Promise.all([10, 11, 12].map((width) => encodePng(pattern(width, 4))))
    await images.prepare(files[0]!)
    await images.prepare(files[1]!)
    await images.prepare(files[0]!)
    expect(prepared).toBe(2)
    await images.prepare(files[2]!)
    await images.prepare(files[0]!)
    expect(prepared).toBe(3)
    await images.prepare(files[1]!)
    expect(prepared).toBe(4)
    await expect(images.prepare(image(1))).rejects.toMatchObject({ code: "BAD_DATA" })
    await expect(images.prepare(image(1))).rejects.toMatchObject({ code: "BAD_DATA" })
  })
})
