import { describe, expect, it } from "vitest"
import { openBpe } from "../../src/tokenizer/bpe/open.ts"
import { Pattern } from "../../src/tokenizer/bpe/pattern.ts"
import { fixture, tokenizerJson } from "./bpe-fixture.ts"

const base = "llama3, bytes"
const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false }
const split = (pattern: string) => ({
  type: "Split",
  pattern: { Regex: pattern },
  behavior: "Isolated",
  invert: false,
})
const preTokenizers = (pretokenizers: object[]) => ({ pre_tokenizer: { type: "Sequence", pretokenizers } })
const normalizers = (steps: object[]) => ({ normalizer: { type: "Sequence", normalizers: steps } })
const replace = (pattern: string, content: string) => ({ type: "Replace", pattern: { String: pattern }, content })
const repeated = (count: number, step: object) => Array.from({ length: count }, () => step)
const nested = (depth: number, step: object): object =>
  depth === 0 ? step : { type: "Sequence", normalizers: [nested(depth - 1, step), step] }

describe("a tokenizer.json that would make too much of a text is rejected when it is opened", () => {
  it.each<[string, object, RegExp]>([
    ["50 pre-tokenizers ByteLevel", preTokenizers(repeated(50, byteLevel)), /50 pre-tokenizers in a row; at most 16/],
    ["two pre-tokenizers ByteLevel", preTokenizers(repeated(2, byteLevel)), /several pre-tokenizers ByteLevel/],
    ["17 pre-tokenizers", preTokenizers(repeated(17, split("a"))), /17 pre-tokenizers in a row/],
    ["40 normalizers that double a letter", normalizers(repeated(40, replace("e", "ee"))), /40 normalizers in a row/],
    ["7 of them", normalizers(repeated(7, replace("e", "ee"))), /up to 128 characters of one; at most 64/],
    ["normalizers within each other", { normalizer: nested(20, replace("e", "f")) }, /21 normalizers in a row/],
    ["a long text put before", normalizers([{ type: "Prepend", prepend: "x".repeat(100_000) }]), /for prepend of/],
    ["a long text put in", normalizers([replace("e", "x".repeat(100_000))]), /for content of/],
    ["decoders that double", { decoder: { type: "Sequence", decoders: repeated(7, replace("e", "ee")) } }, /decoders/],
    [
      "decoders that part all letters",
      { decoder: { type: "Sequence", decoders: repeated(7, { type: "BPEDecoder", suffix: "" }) } },
      /decoders that make up to 128/,
    ],
    ["a long pattern", { pre_tokenizer: split("a".repeat(10_000)) }, /pattern of 10000 characters/],
    [
      "a long added token",
      { added_tokens: [{ id: 900, content: "x".repeat(10_000), special: true }] },
      /of 10000 characters; at most 512/,
    ],
  ])("%s", (_, change, message) => {
    expect(() => openBpe({ ...tokenizerJson(base), ...change }, {}, "x")).toThrow(message)
  })
})

/** Texts on which some search goes back again and again. */
const text = `${"a".repeat(3000)}${" ".repeat(3000)}b`.repeat(8)

describe("a pattern whose time is not linear ends after a second, by its name", () => {
  it.each([
    "(a+)+$",
    "(?:a|a)+b",
    "(?:a|aa)+c",
    "(?=(?:a+)+c)a",
    "(?:a{1,16}){1,16}(?:a{1,16}){1,16}c",
    `${"a?".repeat(40)}${"a".repeat(40)}c`,
  ])("%s", (source) => {
    for (const part of [
      { pre_tokenizer: split(source) },
      { normalizer: { type: "Replace", pattern: { Regex: source }, content: "" } },
    ]) {
      const tokenizer = openBpe({ ...tokenizerJson(base), ...part }, {}, "x")
      const before = performance.now()
      try {
        tokenizer.encode(text)
      } catch (error) {
        expect(error).toMatchObject({ code: "BAD_TOKENIZER", message: expect.stringContaining(source.slice(0, 200)) })
      }
      expect(performance.now() - before).toBeLessThan(30_000)
    }
  })

  it("in a decoder, too", () => {
    const decoder = { type: "Replace", pattern: { Regex: "(?:a|a)+b" }, content: "" }
    const tokenizer = openBpe({ ...tokenizerJson(base), added_tokens: [], decoder }, {}, "x")
    const long = Object.entries(tokenizerJson(base).model.vocab as Record<string, number>)
    const [, id] = long.find(([token]) => token === "a")!
    expect(tokenizer.decode([id], false)).toBe("a")
  })
})

describe("a pattern of a published tokenizer has no limit of time", () => {
  const patterns = new Set<string>()
  const collect = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return
    for (const [key, inside] of Object.entries(value)) {
      if (key === "Regex") patterns.add(inside)
      else collect(inside)
    }
  }
  for (const name of Object.keys(fixture.families)) collect(tokenizerJson(name).pre_tokenizer)

  it.each([...patterns].filter((source) => source.length > 20 && !source.includes("(?<=")))("%s", (source) => {
    expect(Pattern.expression(source).linear).toBe(true)
  })

  it.each(["a+b", "\\s+$", "a+a*b", "(?:ab)+c", "(?<=a+)b", "a{1,100}b"])("unlike %s", (source) => {
    expect(Pattern.expression(source).linear).toBe(false)
  })

  it.each(["a+", "\\s?\\p{L}+", "[0-9]{1,3}", "\\p{N}|x", "(?:'s|'t)?\\p{L}+"])("like %s", (source) => {
    expect(Pattern.expression(source).linear).toBe(true)
  })
})
