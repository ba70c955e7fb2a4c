import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import { FixtureRandom, fixture, fixtureText, openFamily, tokenizerJson } from "./bpe-fixture.ts"

const names = Object.keys(fixture.families)

describe("token ids and decoded texts are those of the Rust library", () => {
  it.each(names)("%s", (name) => {
    const { seed, shown, hashes, added_tokens: added } = fixture.families[name]!
    const tokenizer = openFamily(name)
    for (const { text, ids } of shown) expect([text, [...tokenizer.encode(text)]]).toEqual([text, ids])
    const tokens = new Set([...Object.keys(tokenizerJson(name).model.vocab), ...added.map(({ content }) => content)])
    const random = new FixtureRandom(seed)
    const got = hashes.map(() => {
      const hash = createHash("sha256")
      for (let i = 0; i < fixture.block; i++) {
        const text = fixtureText(random)
        const ids = tokenizer.encode(text)
        const mixed = Array.from({ length: 8 }, () => random.below(tokens.size))
        const decoded = [tokenizer.decode(ids, false), tokenizer.decode(ids, true), tokenizer.decode(mixed, false)]
        hash.update(`${[ids.join(","), ...decoded].join("\n")}\n`)
      }
      return hash.digest("hex").slice(0, 12)
    })
    expect(got).toEqual(hashes)
  })
})
