import { setImmediate } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { openBpe } from "../../src/tokenizer/bpe/open.ts"
import { unicodeForm } from "../../src/tokenizer/bpe/unicode-form.ts"
import { TooManyTokens } from "../../src/tokenizer/too-many-tokens.ts"
import { FixtureRandom, fixture, openFamily, tokenizerJson } from "./bpe-fixture.ts"
import { open, tokenizerFolder } from "./scratch.ts"

const random = new FixtureRandom(5)
const drawn = (alphabet: string, length: number) =>
  Array.from({ length }, () => alphabet[random.below(alphabet.length)]).join("")

/** Texts that made tokenizers slow: one long pre-token, many that look back, and marks without end. */
const hostile: Readonly<Record<string, (length: number) => string>> = {
  "one letter": (length) => "a".repeat(length),
  blanks: (length) => " ".repeat(length),
  "blanks before a letter": (length) => `${" ".repeat(length)}x`,
  "mixed white space": (length) => `${" \n\t\r\n\u00a0".repeat(length / 6)}x`,
  "blanks between letters": (length) => "  x".repeat(length / 3),
  "random letters": (length) => drawn("abcdefghijklmnopqrstuvwxyz", length),
  base64: (length) => drawn("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", length),
  "minified JavaScript": (length) => "function(a,b){return a[b]?(c=a[b],c.d):null};".repeat(length / 45),
  digits: (length) => "1234567890".repeat(length / 10),
  emoji: (length) => "😀".repeat(length / 2),
  "combining marks": (length) => `a${"\u0301\u0323".repeat(length / 2)}`,
  brackets: (length) => "({[<".repeat(length / 4),
  "beginnings of control tokens": (length) => "<|im_".repeat(length / 5),
  "control tokens": (length) => "<|im_end|><s></s>".repeat(length / 17),
  ligatures: (length) => "\ufdfa".repeat(length / 18),
}

/** CPU time in ms, which does not count what other processes do. */
function cpu(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

describe("work is no more than twice as much for a text twice as long", () => {
  const names = Object.keys(fixture.families).filter((name) => !/ (?:True|False), /.test(name))
  it.each(names)("%s", (name) => {
    const tokenizer = openFamily(name)
    const pieces = (text: string) => {
      let count = 1
      for (const steps = tokenizer.encodeInPieces(text); !steps.next().done; ) count++
      return count
    }
    for (const [kind, make] of Object.entries(hostile)) {
      const [once, twice] = [pieces(make(20_000)), pieces(make(40_000))]
      expect([kind, twice <= 2.3 * once + 8]).toEqual([kind, true])
    }
  })

  it.each(Object.keys(hostile))("a quarter of a megabyte in seconds: %s", (kind) => {
    // Its square would take minutes.
    for (const name of ["NFKC, bytes", "llama2, pieces"]) {
      const tokenizer = openFamily(name)
      expect(cpu(() => tokenizer.encode(hostile[kind]!(2 ** 18)))).toBeLessThan(8000)
    }
  })
})

describe("a piece of work is short", () => {
  it.each(["qwen2, bytes", "falcon, cuts", "llama2, pieces"])("%s", (name) => {
    const tokenizer = openFamily(name)
    for (const [kind, make] of Object.entries(hostile)) {
      const text = make(200_000)
      const steps = tokenizer.encodeInPieces(text)
      let pieces = 0
      while (!steps.next().done) pieces++
      expect([kind, pieces > 16]).toEqual([kind, true])
    }
  })
})

describe("a limit of tokens", () => {
  const tokenizer = openFamily("llama3, bytes")
  const encode = (text: string, most: number) => {
    const steps = tokenizer.encodeInPieces(text, { most })
    let [pieces, last] = [0, steps.next()]
    for (; !last.done; last = steps.next()) pieces++
    return { ids: last.value, pieces }
  }

  it("is that of the ids, exactly", () => {
    for (const [kind, make] of Object.entries(hostile)) {
      const text = make(3000)
      const ids = tokenizer.encode(text)
      expect([kind, [...encode(text, ids.length).ids]]).toEqual([kind, [...ids]])
      expect(() => encode(text, ids.length - 1)).toThrow(TooManyTokens)
    }
  })

  it("ends the work before anything is merged, where the text cannot have fewer", () => {
    const steps = tokenizer.encodeInPieces("a".repeat(2 ** 20), { most: 64 })
    let pieces = 0
    expect(() => {
      while (!steps.next().done) pieces++
    }).toThrow("more than 64 tokens")
    expect(pieces).toBeLessThan(1.1 * 2 ** 10) // one for each 1024 characters, none for merges
  })
})

describe("forms of Unicode", () => {
  it("are those of the engine, for long runs of marks in any order", () => {
    const marks: string[] = []
    for (let codePoint = 0x300; codePoint < 0x20000; codePoint++)
      if (/\p{M}/u.test(String.fromCodePoint(codePoint))) marks.push(String.fromCodePoint(codePoint))
    marks.push("\uff9e", "\uff9f", "e", "か", "\u1100")
    for (let i = 0; i < 300; i++) {
      const text = Array.from({ length: 30 + random.below(60) }, () => marks[random.below(marks.length)]).join("")
      for (const form of ["NFC", "NFD", "NFKC", "NFKD"] as const)
        expect(unicodeForm(`e${text}`, form)).toBe(`e${text}`.normalize(form))
    }
  })
})

it("control tokens in contents are found in linear time where a tokenizer normalizes them", () => {
  const json = tokenizerJson("llama2 normalized, pieces")
  const tokenizer = openBpe(json, {}, "x")
  const mark = json.added_tokens.find(({ normalized }: { normalized: boolean }) => normalized).content
  const text = ` ${mark}`.repeat(20_000)
  const literal = new Set(Array.from({ length: 20_000 }, (_, n) => n * (mark.length + 1)))
  expect(cpu(() => tokenizer.encode(text, literal))).toBeLessThan(15_000)
})

it("a prompt of a megabyte leaves the event loop to others", async () => {
  const tokenizer = await open(await tokenizerFolder())
  let done = false
  const prompt = tokenizer.encodeChat([{ role: "user", content: `${" ".repeat(500_000)}${"x".repeat(400_000)}` }])
  void prompt.then(() => (done = true))
  let turns = 0
  while (!done) {
    await setImmediate()
    turns++
  }
  expect((await prompt).tokens.length).toBeGreaterThan(1000)
  expect(turns).toBeGreaterThan(20)
})
