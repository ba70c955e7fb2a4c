import { describe, expect, it } from "vitest"
import { byteCharacters, preTokenPattern } from "../../src/tokenizer/byte-level.ts"
import { trainByteLevelTokenizer } from "../../src/tokenizer/train.ts"
import { open, tokenizerFolder } from "./scratch.ts"

const cut = (text: string) => text.match(new RegExp(preTokenPattern, "gu"))

describe("the pre-token pattern", () => {
  it("keeps a tag whole, with or without the space before it", () => {
    expect(cut("<think>go</think> <action>")).toEqual(["<think>", "go", "</think>", " <action>"])
  })

  it("does not take every angle bracket for a tag", () => {
    expect(cut("a <b c> <3 <>")).toEqual(["a", " <", "b", " c", ">", " <", "3", " <", ">"])
  })

  it("gives each cell of a grid and each newline its own pre-token", () => {
    expect(cut("# # _ O\n_ P")).toEqual(["#", " #", " _", " O", "\n", "_", " P"])
  })

  it("splits numbers into digits and assigns the last space of a run to the following word", () => {
    expect(cut("    step 42\t\n")).toEqual(["   ", " step", " 4", "2", "\t", "\n"])
  })

  it("keeps letters with their marks and leaves nothing out", () => {
    expect(cut("e\u0301te\u0301 हिन्दी👩‍👧\r\n")?.join("")).toBe("e\u0301te\u0301 हिन्दी👩‍👧\r\n")
    expect(cut("e\u0301te\u0301 हिन्दी")).toEqual(["e\u0301te\u0301", " हिन्दी"])
  })
})

describe("trainByteLevelTokenizer", () => {
  it("merges the most frequent pair first, and of equal ones that with the lowest ids", async () => {
    // Pairs: (l,o) 7, (o,w) 7, (w,e) 4, (e,r) 2, (e,s) 2, (s,t) 2, ( ,l) 6: l < o, so l+o comes first.
    const { merges, tokens } = await trainByteLevelTokenizer(["low low low lower lower lowest lowest"], {
      vocabularySize: 1000,
    })
    expect(merges).toEqual([
      ["l", "o"],
      ["lo", "w"],
      ["Ġ", "low"],
      ["Ġlow", "e"],
      ["s", "t"],
      ["Ġlowe", "r"],
      ["Ġlowe", "st"],
    ])
    expect(tokens.slice(256)).toEqual(["lo", "low", "Ġlow", "Ġlowe", "st", "Ġlower", "Ġlowest"])
  })

  it("starts with the 256 bytes, each with a character of its own", async () => {
    const { tokens } = await trainByteLevelTokenizer([], { vocabularySize: 259 })
    expect(tokens).toEqual(byteCharacters)
    expect(new Set(tokens).size).toBe(256)
    expect(tokens[0x41]).toBe("A")
    expect(tokens[0x20]).toBe("Ġ")
    expect(tokens[0x0a]).toBe("Ċ")
  })

  it("merges runs of one symbol from the left", async () => {
    const { merges } = await trainByteLevelTokenizer(["aaaaa aaaaa"], { vocabularySize: 1000 })
    expect(merges.slice(0, 3)).toEqual([
      ["a", "a"],
      ["aa", "a"],
      ["aa", "aaa"],
    ])
  })

  it("stops at the vocabulary size, special tokens included", async () => {
    const { tokens, specialTokens } = await trainByteLevelTokenizer(["low low lower lower"], { vocabularySize: 261 })
    expect(tokens.length + specialTokens.length).toBe(261)
  })

  it("learns nothing from special tokens", async () => {
    const { merges } = await trainByteLevelTokenizer(Array(9).fill("<|im_start|><|im_end|>"), { vocabularySize: 1000 })
    expect(merges).toEqual([])
  })

  it("accepts any text as a special token, and prefers the longest", async () => {
    const specialTokens = ["[a", "[a-b]", "$^.*"]
    const options = { vocabularySize: 1000, specialTokens }
    expect(await trainByteLevelTokenizer(Array(9).fill("[a-b]$^.*[a"), options)).toMatchObject({
      merges: [],
      specialTokens,
    })
    expect((await trainByteLevelTokenizer(["up up"], { ...options, specialTokens: [] })).merges).toEqual([["u", "p"]])
  })

  it("rejects a vocabulary too small for the bytes", async () => {
    for (const vocabularySize of [258, 300.5, Number.NaN, Number.POSITIVE_INFINITY])
      await expect(trainByteLevelTokenizer([], { vocabularySize })).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
  })
})

describe("a learned tokenizer", () => {
  it("reads words of its corpus, tags and cells as one token each", async () => {
    const tokenizer = await open(await tokenizerFolder())
    const pieces = Array.from(tokenizer.encode("<think> Observation:\n# # _ O</think><action>right</action>"), (id) =>
      tokenizer.decode([id]),
    )
    expect(pieces.join("|")).toBe("<think>| Observation|:|\n|#| #| _| O|</think>|<action>|right|</action>")
  })

  it("gives the ids that tokenizers 0.23 in Python gave for the same files", async () => {
    const tokenizer = await open(await tokenizerFolder())
    expect(tokenizer.vocabularySize).toBe(322)
    expect([...tokenizer.encode(" Observation: é 한 <|im_end|>\n<action>up</action>")]).toEqual([
      296, 58, 32, 195, 169, 32, 237, 149, 156, 32, 321, 10, 275, 117, 112, 287,
    ])
  })
})
