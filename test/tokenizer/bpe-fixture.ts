import { readFileSync } from "node:fs"
import type { BpeTokenizer } from "../../src/tokenizer/bpe/bpe-tokenizer.ts"
import { openBpe } from "../../src/tokenizer/bpe/open.ts"

interface Family {
  readonly model: { readonly name: string }
  readonly added_tokens: readonly { readonly content: string }[]
  readonly seed: number
  readonly shown: readonly { readonly text: string; readonly ids: readonly number[] }[]
  /** SHA-256, its first twelve digits, of what each block of texts gives. */
  readonly hashes: readonly string[]
}

interface Fixture {
  readonly strings: number
  readonly block: number
  readonly snippets: readonly string[]
  readonly models: Readonly<Record<string, { readonly vocab: Readonly<Record<string, number>> }>>
  readonly families: Readonly<Record<string, Family>>
}

/** Small tokenizers in the shape of known families, and what the Rust library gives for random texts. */
export const fixture: Fixture = JSON.parse(
  readFileSync(new URL("../fixtures/tokenizers.json", import.meta.url), "utf8"),
)

/** tokenizer.json of a family. */
// biome-ignore lint/suspicious/noExplicitAny: tests break it in every way
export function tokenizerJson(name: string): any {
  const { model, seed: _seed, shown: _shown, hashes: _hashes, ...parts } = fixture.families[name]!
  const { name: vocabulary, ...options } = model
  return structuredClone({ ...parts, model: { type: "BPE", ...fixture.models[vocabulary], ...options } })
}

export function openFamily(name: string): BpeTokenizer {
  return openBpe(tokenizerJson(name), {}, "tokenizer.json")
}

/** mulberry32: the same numbers as in scripts/fixtures/make_tokenizers.py. */
export class FixtureRandom {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1) >>> 0
    t = (t ^ ((t + Math.imul(t ^ (t >>> 7), t | 61)) >>> 0)) >>> 0
    return ((t ^ (t >>> 14)) >>> 0) % limit
  }
}

/** Text of snippets, ASCII and any other characters, as scripts/fixtures/make_tokenizers.py makes it. */
export function fixtureText(random: FixtureRandom): string {
  const { snippets } = fixture
  let text = ""
  for (let parts = random.below(24); parts > 0; parts--) {
    const kind = random.below(8)
    if (kind < 4) text += snippets[random.below(snippets.length)]
    else if (kind === 4) {
      const character = String.fromCharCode(0x20 + random.below(0x5f))
      text += character.repeat(1 + random.below(3))
    } else if (kind === 5) text += String.fromCodePoint(0xa0 + random.below(0x3000))
    else if (kind === 6) text += String.fromCodePoint(0x10000 + random.below(0x20000))
    else {
      const code = random.below(0x110000 - 0x800)
      text += String.fromCodePoint(code < 0xd800 ? code : code + 0x800)
    }
  }
  return text
}
