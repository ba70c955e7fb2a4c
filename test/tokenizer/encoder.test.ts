import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { Random } from "../../src/random.ts"
import { createEncoder } from "../../src/tokenizer/encoder.ts"
import { loadLibraryTokenizer } from "../../src/tokenizer/library.ts"
import { nastyText } from "./nasty-text.ts"
import { tokenizerFolder } from "./scratch.ts"

const byteLevel = { type: "ByteLevel", add_prefix_space: false, use_regex: false }
const split = (pattern: string) => ({ type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false })
const sequence = (...pretokenizers: object[]) => ({ type: "Sequence", pretokenizers })
const added = (id: number, content: string, more = {}) => ({ id, content, special: false, normalized: false, ...more })
const likeQwen = "(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s+(?!\\S)|\\s+"

const variants: Record<string, object> = {
  "of gigpo": {},
  "that normalise, as Qwen's": { normalizer: { type: "NFC" }, pre_tokenizer: sequence(split(likeQwen), byteLevel) },
  "that ignore merges, as Llama 3's": {
    ignore_merges: true,
    pre_tokenizer: sequence(split("\\p{N}{1,3}|\\s"), byteLevel),
  },
  "with overlapping added tokens": { added_tokens: [added(390, "<th"), added(391, "<think>"), added(392, "<a b>")] },
  "with greedy added tokens": { added_tokens: [added(390, "<action>", { lstrip: true, rstrip: true })] },
  "with normalised added tokens": {
    normalizer: { type: "NFC" },
    added_tokens: [added(390, "</think>", { normalized: true })],
  },
  "without added tokens": { added_tokens: [] },
  "without a first pattern": { pre_tokenizer: { ...byteLevel, use_regex: true } },
  "of several patterns": { pre_tokenizer: sequence(split("\\s"), split("[aeiou]+"), byteLevel) },
}

describe("createEncoder", () => {
  for (const [name, change] of Object.entries(variants))
    it(`gives the library's ids for tokenizers ${name}`, async () => {
      const json = JSON.parse(readFileSync(join(await tokenizerFolder(), "tokenizer.json"), "utf8"))
      const { ignore_merges = false, ...rest } = change as { ignore_merges?: boolean }
      Object.assign(json, rest).model.ignore_merges = ignore_merges
      const library = loadLibraryTokenizer(json, {})
      const encode = createEncoder(library, {})
      const random = new Random(11)
      for (let i = 0; i < 500; i++) {
        const text = nastyText(random)
        expect([...encode(text)]).toEqual(library.encode(text, { add_special_tokens: false }).ids)
      }
    })

  it("still gives the right ids after more distinct words than it remembers", async () => {
    const json = JSON.parse(readFileSync(join(await tokenizerFolder(), "tokenizer.json"), "utf8"))
    const library = loadLibraryTokenizer(json, {})
    const encode = createEncoder(library, {})
    const letters = (n: number) =>
      Array.from(n.toString(26), (digit) => String.fromCharCode(97 + Number.parseInt(digit, 26)))
    for (let n = 0; n < 70_000; n++) encode(letters(n).join(""))
    const text = "<think>box left</think> zebra"
    expect([...encode(text)]).toEqual(library.encode(text, { add_special_tokens: false }).ids)
  })
})
