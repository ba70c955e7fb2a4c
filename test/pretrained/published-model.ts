import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import type { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { adversarialConversations } from "./conversations.ts"

// A pretrained model as it is published, beside what another library computes with the same file.

interface Expected {
  /** Tokens whose logits are recorded. */
  readonly kept: readonly number[]
  readonly prompts: readonly {
    readonly text: string
    readonly tokens: readonly number[]
    /** Logits of the kept tokens after the prompt. */
    readonly logits: readonly number[]
    /** log Σ exp(logit) after the prompt. */
    readonly normalizer: number
    /** The 24 most probable tokens after the prompt. */
    readonly greedy: readonly number[]
  }[]
  /** SHA-256 of the token IDs of 100 conversations each. */
  readonly blocks: readonly string[]
}

interface Published {
  /** GGUF file; the tests are skipped where it is empty. */
  readonly file: string
  /** Name of the file in test/fixtures/pretrained. */
  readonly fixture: string
  /** Largest difference of a logit. */
  readonly tolerance: number
  /** Tokens before every prompt. */
  readonly before?: readonly number[]
  readonly openTokenizer: (file: string) => Promise<Tokenizer>
}

export function testPublishedModel(
  title: string,
  { file, fixture, tolerance, before = [], openTokenizer }: Published,
): void {
  describe.runIf(file)(title, () => {
    let expected: Expected
    let policy: NativePolicy
    let tokenizer: Tokenizer
    beforeAll(async () => {
      const url = new URL(`../fixtures/pretrained/${fixture}`, import.meta.url)
      expected = JSON.parse(await readFile(url, "utf8"))
      policy = await NativePolicy.open(file, { device: "cpu", precision: "float32", training: false })
      tokenizer = await openTokenizer(file)
    }, 600_000)
    afterAll(async () => {
      await policy.dispose()
      await tokenizer[Symbol.asyncDispose]()
    })

    it(`has the logits of transformers to ${tolerance}`, async () => {
      let largest = 0
      for (const { text, tokens, logits, normalizer } of expected.prompts) {
        expect([...before, ...tokenizer.encode(text)], text).toEqual(tokens)
        const all = await policy.logits(Int32Array.from(tokens))
        const last = all.subarray((tokens.length - 1) * (all.length / tokens.length))
        const found = [...expected.kept.map((token) => last[token]!), logSumExp(last)]
        for (const [i, wanted] of [...logits, normalizer].entries())
          largest = Math.max(largest, Math.abs(found[i]! - wanted))
      }
      expect(largest).toBeLessThan(tolerance)
    }, 600_000)

    it("continues as transformers does", async () => {
      for (const { text, tokens, greedy } of expected.prompts) {
        const prompt = Int32Array.from(tokens)
        const stopTokens = [...tokenizer.eosTokens]
        const completion = await policy.sample({ prompt, maxTokens: 24, temperature: 0, stopTokens, key: [0, 0] })
        expect([...completion.tokens], text).toEqual(greedy)
      }
    }, 600_000)

    it("has the expected token IDs for 3,000 adversarial conversations", async () => {
      const conversations = adversarialConversations(3000)
      const blocks: string[] = []
      for (let start = 0; start < conversations.length; start += 100) {
        const digest = createHash("sha256")
        for (const messages of conversations.slice(start, start + 100)) {
          const { tokens } = await tokenizer.encodeChat(messages)
          digest.update(new Uint8Array(Int32Array.of(tokens.length, ...tokens).buffer))
        }
        blocks.push(digest.digest("hex").slice(0, 16))
      }
      expect(blocks).toEqual(expected.blocks)
    }, 600_000)
  })
}

function logSumExp(logits: Float32Array): number {
  const largest = logits.reduce((a, b) => Math.max(a, b))
  return largest + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - largest), 0))
}
