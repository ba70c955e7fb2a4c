import { describe, expect, it } from "vitest"
import type { AgentLoop } from "../../src/rollout/play.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import type { ChatCodec } from "../../src/tokenizer/chat-codec.ts"
import { GigpoError } from "../../src/util/errors.ts"
import type { DoorsTask } from "./doors.ts"
import { FakePolicy } from "./fake-policy.ts"
import { rolloutSetup, useTokenizer } from "./setup.ts"

// A faulty custom engine or tokenizer affects every episode, so it ends the rollout with an error that names it.

const tokenizer = useTokenizer()

const messages = [{ role: "user", content: "x" }] as const
/** The loop, and agents that make nothing of what fails. */
const players: [string, AgentLoop<DoorsTask> | undefined][] = [
  ["the loop", undefined],
  [
    "an agent's sample()",
    async ({ sample }) => {
      await sample(messages).catch(() => {})
      return {}
    },
  ],
]
const byHand: AgentLoop<DoorsTask> = async ({ policy, tokenizer, maxCompletionTokens }) => {
  const { tokens: prompt } = await tokenizer.encodeChat(messages)
  await policy.sample({ prompt, maxTokens: maxCompletionTokens, stopTokens: [], key: [1, 2] }).catch(() => {})
  return {}
}

describe.each([...players, ["an agent's policy.sample()", byHand] as const])(
  "of an engine, %s rejects",
  (_, agentLoop) => {
    const [tokens, logProbs] = [Int32Array.of(1, 2), Float32Array.of(-1, -1)]
    const sound = { tokens, logProbs, finishReason: "stop" }
    it.each<[string, unknown, RegExp]>([
      ["nothing", undefined, /gave undefined; give { tokens, logProbs, finishReason }/],
      ["a list", { ...sound, tokens: [1, 2] }, /gave no tokens; give the sampled ids as an Int32Array/],
      ["0 tokens", { ...sound, tokens: new Int32Array(), logProbs: new Float32Array() }, /gave 0 tokens/],
      ["too many", { ...sound, tokens: new Int32Array(5) }, /gave 5 tokens; .* at most maxTokens, which was 4/],
      [
        "an unknown token",
        { ...sound, tokens: Int32Array.of(1, 259) },
        /gave token 259, outside its vocabulary of 259/,
      ],
      ["a negative token", { ...sound, tokens: Int32Array.of(-2, 1) }, /gave token -2/],
      ["fewer log-probabilities", { ...sound, logProbs: Float32Array.of(-1) }, /gave 1 log-probabilities for 2 tokens/],
      ["none", { ...sound, logProbs: undefined }, /gave no log-probabilities for 2 tokens/],
      ["one of NaN", { ...sound, logProbs: Float32Array.of(-1, Number.NaN) }, /gave the log-probability NaN/],
      [
        "fewer entropies",
        { ...sound, entropies: Float32Array.of(1) },
        /invalid entropies; give a Float32Array of 2 finite numbers/,
      ],
      ["entropies in a list", { ...sound, entropies: [1, 1] }, /entropies; give a Float32Array of .*, or none/],
      [
        "an entropy of infinity",
        { ...sound, entropies: Float32Array.of(1, Infinity) },
        /invalid entropies; give a Float32Array of 2 finite/,
      ],
      ["no reason", { ...sound, finishReason: "eos" }, /gave the finishReason 'eos'; give "stop" or "length"/],
    ])("%s", async (_name, completion, message) => {
      class Broken extends FakePolicy {
        override async sample() {
          return completion as never
        }
      }
      const setup = rolloutSetup(tokenizer.get(), { policy: new Broken(tokenizer.get()) })
      const error = await rollout({ ...setup, agentLoop }).catch((reason) => reason)
      expect(GigpoError.is(error)).toBe(true)
      expect(error.message).toMatch(/^The policy's sample\(\) gave /)
      expect(error.message).toMatch(message)
    })
  },
)

describe.each(players)("a faulty tokenizer, with the player %s, ends the rollout with", (_, agentLoop) => {
  const boom = () => {
    throw new Error("boom")
  }
  it.each<[string, object, string]>([
    ["no prompt", { encodeChat: async () => undefined }, "encodeChat() gave undefined; give { tokens }"],
    ["no tokens", { encodeChat: async () => ({ ids: 1 }) }, "encodeChat() gave { ids: 1 }; give { tokens }"],
    ["a list", { encodeChat: async () => ({ tokens: [1] }) }, "encodeChat() gave { tokens: [Array] }"],
    [
      "an unknown token",
      { encodeChat: async () => ({ tokens: Int32Array.of(259) }) },
      "encodeChat() gave token 259, outside the policy's vocabulary of 259",
    ],
    ["a throw", { encodeChat: boom }, "encodeChat() threw: boom"],
    ["a throw on the way back", { decode: boom }, "decode() threw: boom"],
    ["no text", { decode: () => 3 }, "decode() gave 3; give a string"],
  ])("%s", async (_name, changes, message) => {
    const { eosTokens, encodeChat, encode, decode } = tokenizer.get()
    const sound: ChatCodec = {
      eosTokens,
      encode,
      encodeChat: encodeChat.bind(tokenizer.get()),
      decode: decode.bind(tokenizer.get()),
    }
    const setup = rolloutSetup(tokenizer.get())
    await expect(rollout({ ...setup, agentLoop, tokenizer: { ...sound, ...changes } })).rejects.toMatchObject({
      code: "BAD_TOKENIZER",
      message: expect.stringContaining(`The tokenizer's ${message}`),
    })
  })

  it("no error if it rejects the messages: that fails the episode", async () => {
    const own = new GigpoError("BAD_TOKENIZER", "no such role")
    const encodeChat = () => Promise.reject(own)
    const changed = Object.assign(Object.create(tokenizer.get()), { encodeChat })
    const { groups } = await rollout({ ...rolloutSetup(tokenizer.get()), agentLoop, tokenizer: changed })
    for (const { steps } of groups.flatMap(({ episodes }) => episodes)) expect(steps).toEqual([])
  })
})
