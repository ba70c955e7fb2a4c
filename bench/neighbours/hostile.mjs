// Client with maximum load that runs until it is killed: hostile.mjs <address> <key> <kind of load>.
import { caller, client, tokensOf } from "./client.mjs"

export const hostile = {
  "4,096 × 250 tokens, four calls at once": async (post) => {
    const { sample } = await client(post)
    const lane = async () => {
      while (true) await sample(16, 4096, 250)
    }
    await Promise.all([lane(), lane(), lane(), lane()])
  },
  "16,000 calls of 250 tokens": async (post) => {
    const { sample } = await client(post)
    let [open, sent] = [0, 0]
    while (sent < 16_000) {
      if (open > 500) {
        await new Promise((resolve) => setTimeout(resolve, 1))
        continue
      }
      open++
      sent++
      const count = () => open--
      sample(16, 1, 250).then(count, count)
    }
    while (true) await new Promise((resolve) => setTimeout(resolve, 100))
  },
  "log-probabilities of prompts of 700 tokens, sixteen at once": async (post) => {
    const { sample } = await client(post)
    const lane = async () => {
      while (true) await sample(700, 1, 1, { prompt_logprobs: true })
    }
    await Promise.all(Array.from({ length: 16 }, lane))
  },
  "training of a model of its own": async (post) => {
    const { session_id, result } = await client(post)
    const made = { session_id, base_model: "served", lora_config: { rank: 8 } }
    const { model_id } = await result("/create_model", made)
    const tokens = tokensOf(257)
    const datum = {
      model_input: { chunks: [{ type: "encoded_text", tokens: tokens.slice(0, 256) }] },
      loss_fn_inputs: {
        target_tokens: { data: tokens.slice(1), dtype: "int64", shape: [256] },
        weights: { data: Array(256).fill(1), dtype: "float32", shape: [256] },
      },
    }
    const data = Array(64).fill(datum)
    for (let seq_id = 1; ; seq_id++)
      await result("/forward_backward", {
        ...{ model_id, seq_id },
        forward_backward_input: { data, loss_fn: "cross_entropy" },
      })
  },
}

const [url, key, what] = process.argv.slice(2)
if (what !== undefined) await hostile[what](caller(url, key))
