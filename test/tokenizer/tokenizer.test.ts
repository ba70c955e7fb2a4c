import { rmSync, truncateSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { describe, expect, it } from "vitest"
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { Random } from "../../src/util/random.ts"
import { nastyText } from "./nasty-text.ts"
import { edit, open, tokenizerFolder } from "./scratch.ts"

describe("encode and decode", () => {
  it("give back any text", async () => {
    const tokenizer = await open(await tokenizerFolder())
    const random = new Random(7)
    for (let i = 0; i < 2000; i++) {
      const text = nastyText(random)
      expect(tokenizer.decode(tokenizer.encode(text))).toBe(text)
    }
  })

  it("take a lone surrogate for U+FFFD and an empty text for no tokens", async () => {
    const tokenizer = await open(await tokenizerFolder())
    expect(tokenizer.decode(tokenizer.encode("a\ud800b"))).toBe("a\ufffdb")
    expect(tokenizer.encode("")).toEqual(new Int32Array(0))
    expect(tokenizer.decode([])).toBe("")
  })

  it("read special tokens in text, and omit them on request", async () => {
    const tokenizer = await open(await tokenizerFolder())
    const ids = tokenizer.encode("up<|im_end|>\n")
    expect(ids.at(-2)).toBe(tokenizer.eosTokens[0])
    expect(tokenizer.decode(ids)).toBe("up<|im_end|>\n")
    expect(tokenizer.decode(ids, { skipSpecial: true })).toBe("up\n")
  })

  it("give nothing for ids without a token and U+FFFD for half a character", async () => {
    const tokenizer = await open(await tokenizerFolder())
    expect(tokenizer.decode([...tokenizer.encode("up"), tokenizer.vocabularySize, 1_000_000, -1])).toBe("up")
    expect(tokenizer.decode(tokenizer.encode("é").subarray(0, 1))).toBe("\ufffd")
  })

  it("leave the spaces before punctuation alone", async () => {
    const directory = await tokenizerFolder()
    edit(join(directory, "tokenizer_config.json"), (config) => {
      config.clean_up_tokenization_spaces = true
    })
    const tokenizer = await open(directory)
    expect(tokenizer.decode(tokenizer.encode("go , then ! do n't"))).toBe("go , then ! do n't")
  })
})

describe("end-of-turn tokens", () => {
  it("come from the tokenizer, the model's generation settings and the chat template, each once", async () => {
    const directory = await tokenizerFolder()
    const idOf = async (token: string) => (await open(directory)).encode(token)[0]!
    const [endOfText, start, end] = await Promise.all(["<|endoftext|>", "<|im_start|>", "<|im_end|>"].map(idOf))
    expect((await open(directory)).eosTokens).toEqual([end])
    writeFileSync(join(directory, "config.json"), JSON.stringify({ eos_token_id: start }))
    expect((await open(directory)).eosTokens).toEqual([end, start])
    writeFileSync(join(directory, "generation_config.json"), JSON.stringify({ eos_token_id: [end, endOfText] }))
    expect((await open(directory)).eosTokens).toEqual([end, endOfText])
    edit(join(directory, "tokenizer_config.json"), (config) => {
      config.eos_token = { content: "<|endoftext|>" }
    })
    writeFileSync(join(directory, "generation_config.json"), JSON.stringify({ eos_token_id: endOfText }))
    expect((await open(directory)).eosTokens).toEqual([endOfText, end])
  })

  it("must exist", async () => {
    const directory = await tokenizerFolder()
    writeFileSync(join(directory, "generation_config.json"), JSON.stringify({ eos_token_id: 151645 }))
    await expect(Tokenizer.open(directory)).rejects.toMatchObject({
      code: "BAD_TOKENIZER",
      message: expect.stringContaining("151645"),
    })
    rmSync(join(directory, "generation_config.json"))
    edit(join(directory, "tokenizer_config.json"), (config) => {
      config.eos_token = "<eos>"
      config.chat_template = "{{ messages[0].content }}"
    })
    await expect(Tokenizer.open(directory)).rejects.toMatchObject({
      code: "BAD_TOKENIZER",
      message: expect.stringContaining("eos_token"),
    })
  })
})

describe("a tokenizer folder", () => {
  it("lists the files to copy", async () => {
    const directory = await tokenizerFolder()
    writeFileSync(join(directory, "special_tokens_map.json"), "{}")
    writeFileSync(join(directory, "model.safetensors"), "")
    const { files } = await open(directory)
    expect(files.map((path) => basename(path)).sort()).toEqual([
      "special_tokens_map.json",
      "tokenizer.json",
      "tokenizer_config.json",
    ])
  })

  it("fits a model with as many rows as ids or more, and no other", async () => {
    const tokenizer = await open(await tokenizerFolder())
    const highest = Math.max(...tokenizer.encode("<|endoftext|><|im_start|><|im_end|>"))
    expect(tokenizer.vocabularySize).toBe(highest + 1)
    tokenizer.checkVocabulary(tokenizer.vocabularySize)
    tokenizer.checkVocabulary(tokenizer.vocabularySize + 100)
    expect(() => tokenizer.checkVocabulary(tokenizer.vocabularySize - 1)).toThrow(
      expect.objectContaining({ code: "BAD_TOKENIZER" }),
    )
  })

  const damages: Record<string, [file: string, damage: (path: string) => void]> = {
    "lacks tokenizer.json": ["tokenizer.json", (path) => rmSync(path)],
    "lacks tokenizer_config.json": ["tokenizer_config.json", (path) => rmSync(path)],
    "has half a tokenizer.json": ["tokenizer.json", (path) => truncateSync(path, 5000)],
    "has an empty tokenizer_config.json": ["tokenizer_config.json", (path) => truncateSync(path, 0)],
    "has an array for tokenizer.json": ["tokenizer.json", (path) => writeFileSync(path, "[]")],
    "has a huge tokenizer_config.json": ["tokenizer_config.json", (path) => truncateSync(path, 2 ** 25)],
    "has no model": ["tokenizer.json", (path) => edit(path, (json) => delete json.model)],
    "has no merges": ["tokenizer.json", (path) => edit(path, (json) => delete json.model.merges)],
    "has another kind of model": ["tokenizer.json", (path) => edit(path, (json) => (json.model.type = "Unigram"))],
    "has a fractional id": ["tokenizer.json", (path) => edit(path, (json) => (json.model.vocab.A = 1.5))],
    "has a huge id": ["tokenizer.json", (path) => edit(path, (json) => (json.model.vocab.A = 4e9))],
    "has an added token without text": [
      "tokenizer.json",
      (path) => edit(path, (json) => (json.added_tokens[0].content = "")),
    ],
    "has an unknown pre-tokenizer": [
      "tokenizer.json",
      (path) => edit(path, (json) => (json.pre_tokenizer = { type: "?" })),
    ],
    "has a broken pattern": [
      "tokenizer.json",
      (path) => edit(path, (json) => (json.pre_tokenizer.pretokenizers[0].pattern.Regex = "(")),
    ],
    "has an unknown token without an id": [
      "tokenizer.json",
      (path) => edit(path, (json) => (json.model.unk_token = "[UNK]")),
    ],
    "has a chat template that is no Jinja": [
      "tokenizer_config.json",
      (path) => edit(path, (config) => (config.chat_template = "{% if %}")),
    ],
  }
  for (const [what, [file, damage]] of Object.entries(damages))
    it(`is rejected, with the name of its file, if it ${what}`, async () => {
      const directory = await tokenizerFolder()
      damage(join(directory, file))
      await expect(Tokenizer.open(directory)).rejects.toMatchObject({
        name: "GigpoError",
        code: "BAD_TOKENIZER",
        message: expect.stringContaining(join(directory, file)),
      })
    })

  it.each(["294", 1.5, -1, true, ["294"], { id: 1 }])("is rejected where eos_token_id is %j", async (wrong) => {
    const directory = await tokenizerFolder()
    writeFileSync(join(directory, "generation_config.json"), JSON.stringify({ eos_token_id: wrong }))
    await expect(Tokenizer.open(directory)).rejects.toMatchObject({
      code: "BAD_TOKENIZER",
      message: expect.stringMatching(/eos_token_id in generation_config.json or config.json that is neither an id/),
    })
  })
})
