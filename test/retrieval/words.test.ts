import { describe, expect, it } from "vitest"
import { unicodeWords } from "../../src/retrieval/unicode-words.ts"
import { forEachWord } from "../../src/retrieval/words.ts"

function words(text: string): string[] {
  const found: string[] = []
  forEachWord(text, (word) => found.push(word))
  return found
}

/** The whole text at once, by ICU alone. */
function byIcu(text: string): string[] {
  const found: string[] = []
  unicodeWords(text, (word) => found.push(word))
  return found
}

/** Texts that are mostly made of what the rules treat in special ways. */
function* randomTexts(alphabet: readonly string[], count: number): Generator<string> {
  let state = 12345
  const below = (limit: number) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
  for (let i = 0; i < count; i++)
    yield Array.from({ length: 1 + below(14) }, () => alphabet[below(alphabet.length)]).join("")
}

describe("words", () => {
  it.each([
    ["It's 3.14, isn't it?", ["It's", "3.14", "isn't", "it"]],
    ["1,000.50 km/h at 12:30", ["1,000.50", "km", "h", "at", "12", "30"]],
    ["e-mail foo@bar.com, a:b", ["e", "mail", "foo", "bar.com", "a:b"]],
    ["snake_case __init__ __ _", ["snake_case", "__init__"]],
    ["1.a a.1 a..b 'quoted'", ["1", "a", "a", "1", "a", "b", "quoted"]],
    ["x2y 2x2 a1.5", ["x2y", "2x2", "a1.5"]],
    ["naïve café – déjà", ["naïve", "café", "déjà"]],
    ["日本語ひらカタカナ", ["日", "本", "語", "ひ", "ら", "カタカナ"]],
    ["ภาษาไทย ok", ["ภาษาไทย", "ok"]],
    ["a®b ★ ☞ ™ ❤️ 👍🏽 🇩🇪", ["a", "®", "b", "★", "☞", "™", "❤️", "👍🏽", "🇩🇪"]],
    ["€ £ … §", []],
    ["", []],
  ])("of %j", (text, expected) => {
    expect(words(text)).toEqual(expected)
  })

  it("are those of Intl.Segmenter for every three ASCII characters", () => {
    const ascii = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code))
    // One of each kind on both sides; within, every character.
    for (const left of ["a", "Z", "0", "_", "'", ".", ":", ",", " ", "\r", "-"])
      for (const right of ["a", "Z", "0", "_", "'", ".", ":", ",", " ", "\n", "-"])
        for (const middle of ascii) {
          const text = left + middle + right
          if (words(text).join("|") !== byIcu(text).join("|")) expect([text, words(text)]).toEqual([text, byIcu(text)])
        }
  })

  it("are those of Intl.Segmenter for random texts, whatever stretches they are read in", () => {
    const ascii = [..."aZ09_.,;:'\"-@/\\ \t\n", "the", "12"]
    const others = [
      "é",
      "ß",
      "Σ",
      "א",
      "ж",
      "日",
      "ひ",
      "カ",
      "ー",
      "한",
      "\u0301",
      "\u00ad",
      "\u200d",
      "’",
      "·",
      "€",
      "❤️",
      "🇩",
      "\u00a0",
    ]
    for (const alphabet of [ascii, [...ascii, ...others]])
      for (const text of randomTexts(alphabet, 20_000))
        if (words(text).join("|") !== byIcu(text).join("|")) expect([text, words(text)]).toEqual([text, byIcu(text)])
  })

  it("are cut after 255 characters", () => {
    expect(words(`${"a".repeat(600)} b`).map((word) => word.length)).toEqual([255, 255, 90, 1])
    expect(words("é".repeat(300)).map((word) => word.length)).toEqual([255, 45])
  })
})
