import { describe, expect, it } from "vitest"
import { openBpe } from "../../src/tokenizer/bpe/open.ts"
import { openFamily, tokenizerJson } from "./bpe-fixture.ts"

describe("literal indices", () => {
  it.each(["qwen2, bytes", "deepseek2, bytes", "gemma, pieces", "mistral, pieces", "llama2 normalized, pieces"])(
    "keep added tokens from being read, and merges run across: %s",
    (name) => {
      const json = tokenizerJson(name)
      const mark = json.added_tokens.find(({ content }: { content: string }) => content.startsWith("<")).content
      const [all, none] = [openBpe(json, {}, "x"), openBpe({ ...json, added_tokens: [] }, {}, "x")]
      const text = `it is ok${mark} the end`
      const at = text.indexOf(mark)
      expect([...all.encode(text, new Set([at]))]).toEqual([...none.encode(text)])
      expect([...all.encode(text, new Set([at + 1]))]).toEqual([...all.encode(text)])
      const id = all.addedTokens.find(({ content }) => content === mark)!.id
      const twice = all.encode(text + text, new Set([at])).filter((each) => each === id)
      expect(twice).toHaveLength(name.includes("normalized") ? 0 : 1)
    },
  )
})

describe("encode", () => {
  it("takes a lone surrogate for U+FFFD", () => {
    const tokenizer = openFamily("qwen2, bytes")
    expect([...tokenizer.encode("a\ud800b\udc00")]).toEqual([...tokenizer.encode("a\ufffdb\ufffd")])
  })

  it.each(["a", " ", "\n", "1", "ab ", "<|", "漢", "e\u0301"])("long repetitions of %j", (part) => {
    const text = part.repeat(Math.ceil(1e5 / part.length))
    for (const name of ["starcoder, bytes", "qwen2, bytes", "llama2, pieces"]) {
      const tokenizer = openFamily(name)
      const ids = tokenizer.encode(text)
      const expected = name === "qwen2, bytes" ? text.normalize("NFC") : text
      expect(tokenizer.decode(ids, false) === expected).toBe(true)
    }
  })

  it("remembers pieces without mixing up their ids", () => {
    const [tokenizer, fresh] = [openFamily("qwen2, bytes"), openFamily("qwen2, bytes")]
    for (let n = 0; n < 70_000; n++) tokenizer.encode(n.toString(36))
    const text = "The model trains in the environment 36 1k5"
    expect([...tokenizer.encode(text)]).toEqual([...fresh.encode(text)])
  })
})

describe("tokenizer_config.json", () => {
  it("counts over the flags of tokenizer.json, as in transformers", () => {
    const json = tokenizerJson("llama3, bytes")
    const token = json.added_tokens.find(({ content }: { content: string }) => content === "<think>")
    const [plain, stripping] = [
      {},
      { added_tokens_decoder: { [token.id]: { ...token, id: undefined, lstrip: true } } },
    ].map((config) => openBpe(json, config, "x"))
    expect(plain!.encode("it  <think>").length).toBeGreaterThan(stripping!.encode("it  <think>").length)
  })

  it("makes the tokens of the vocabulary that it names special", () => {
    const json = tokenizerJson("llama3, bytes")
    const word = Object.keys(json.model.vocab).find((token) => /^[a-z]{4,}$/.test(token))!
    const tokenizer = openBpe(json, { pad_token: word, unk_token: null }, "x")
    expect(tokenizer.decode(tokenizer.encode(`a ${word}`), true)).not.toContain(word)
  })
})

it("reads files of early versions: no kind of model, an empty unknown token, merges as pairs", () => {
  const json = tokenizerJson("gpt2, bytes")
  const { type: _, ...model } = json.model
  const merges = model.merges.map((merge: string | string[]) => (Array.isArray(merge) ? merge : merge.split(" ")))
  const early = openBpe({ ...json, model: { ...model, merges, unk_token: "" } }, {}, "x")
  const text = "The model trains.\n\n  it's 123 漢"
  expect([...early.encode(text)]).toEqual([...openFamily("gpt2, bytes").encode(text)])
})
