import { join } from "node:path"
import { expect, it } from "vitest"
import { textPrefix } from "../../src/tokenizer/text-prefix.ts"
import { edit, open, tokenizerFolder } from "../tokenizer/scratch.ts"
import { type Answer, events, speaking } from "./speaking.ts"

// POST /v1/completions: a text that is continued as it is.

const said = " <think>a</think>\n<tool_call>\n{}\n</tool_call> \n"

it.each([false, true])("continues a text as it is, without a template (streamed: %s)", async (stream) => {
  const { post, policy, tokenizer } = await speaking([said])
  for (const prompt of ["Once <|im_start|>upon", ["Once <|im_start|>upon"]]) {
    const response = await post("completions", {
      prompt,
      stream,
      max_tokens: 200,
      ...(stream && { stream_options: { include_usage: true } }),
    })
    expect(response.status).toBe(200)
    const told: Answer[] = stream ? await events(response) : [await response.json()]
    for (const { object, id, model } of told)
      expect([object, id.slice(0, 5), model]).toEqual(["text_completion", "cmpl-", "policy"])
    const choices = told.flatMap(({ choices }) => choices)
    expect(choices.map(({ text }) => text).join("")).toBe(said)
    expect(choices.at(-1).finish_reason).toBe("stop")
    const { usage } = told.at(-1)
    const [prompted, sampled] = [policy.requests[0]!.prompt.length, policy.tokens(said).length]
    expect([usage.prompt_tokens, usage.completion_tokens, usage.total_tokens]).toEqual([
      prompted,
      sampled,
      prompted + sampled,
    ])
  }
  expect(policy.requests.map(({ prompt }) => [...prompt])).toEqual(
    Array(2).fill([...tokenizer.encode("Once <|im_start|>upon")]),
  )
})

it("gives several choices, stops, log-probabilities in columns, and keeps to a format", async () => {
  const { post, policy } = await speaking(["One two.", "Three four.", '{"a": 1}'])
  const { choices }: Answer = await (
    await post("completions", { prompt: "Count.", n: 2, best_of: 2, stop: " four", logprobs: 2 })
  ).json()
  expect(choices.map(({ text, finish_reason }: Answer) => [text, finish_reason])).toEqual([
    ["One two.", "stop"],
    ["Three", "stop"],
  ])
  const { tokens, token_logprobs, top_logprobs, text_offset } = choices[0].logprobs
  expect(tokens.join("")).toBe("One two.<|im_end|>")
  expect(token_logprobs).toEqual(tokens.map((_: string, place: number) => -1 - place / 1024))
  expect(Object.keys(top_logprobs[0]).length).toBe(2)
  expect(text_offset).toEqual(tokens.map((_: string, place: number) => tokens.slice(0, place).join("").length))
  const response_format = { type: "json_object" }
  const object: Answer = await (
    await post("completions", { prompt: "An object:", response_format, logprobs: 0 })
  ).json()
  expect([object.choices[0].text, object.choices[0].logprobs.top_logprobs]).toEqual(['{"a": 1}', null])
  expect(policy.requests[2]!.constraint).toBeDefined()
})

it("draws the same as before, and not what a chat of these words draws", async () => {
  const { post, policy } = await speaking(["Yes."])
  await post("completions", { prompt: "Go.", seed: 1 })
  await post("completions", { prompt: "Go.", seed: 1 })
  await post("chat/completions", { messages: [{ role: "user", content: "Go." }], seed: 1 })
  const [one, again, chat] = policy.requests.map(({ key }) => key)
  expect(again).toEqual(one)
  expect(chat).not.toEqual(one)
})

it.each<[string, object]>([
  ["prompt", {}],
  ["prompt", { prompt: ["a", "b"] }],
  ["prompt", { prompt: [1, 2, 3] }],
  ["prompt", { prompt: "half \ud800" }],
  ["echo", { prompt: "x", echo: true }],
  ["suffix", { prompt: "x", suffix: "y" }],
  ["best_of", { prompt: "x", best_of: 2 }],
  ["logprobs", { prompt: "x", logprobs: true }],
  ["top_p", { prompt: "x", top_p: 0.5 }],
  ["max_tokens", { prompt: "x", max_tokens: 0 }],
  ["messages", { prompt: "x", messages: [] }],
])("rejects %s by name: %j", async (param, body) => {
  const { post, policy } = await speaking(["Yes."])
  const response = await post("completions", body)
  expect([response.status, ((await response.json()) as Answer).error.param]).toEqual([400, param])
  expect(policy.requests).toEqual([])
})

it("a prompt that fills the positions is rejected, however long", async () => {
  const { post } = await speaking(["Yes."], { maxPositions: 64 })
  for (const length of [300, 100_000]) {
    const response = await post("completions", { prompt: "one two ".repeat(length) })
    expect([response.status, ((await response.json()) as Answer).error.code]).toEqual([400, "context_length_exceeded"])
  }
})

it("a model without a chat template answers this, and names it to a chat", async () => {
  const { post, policy } = await speaking(["Yes."], { template: () => undefined as never })
  expect((await post("completions", { prompt: "Go." })).status).toBe(200)
  const chat = await post("chat/completions", { messages: [{ role: "user", content: "Go." }] })
  expect([chat.status, ((await chat.json()) as Answer).error.message]).toEqual([
    400,
    expect.stringContaining("/v1/completions"),
  ])
  expect(policy.requests.length).toBe(1)
})

it("begins a text with the token that transformers puts there, once", async () => {
  const template = { type: "TemplateProcessing", single: [{ SpecialToken: { id: "<|endoftext|>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }], pair: [], special_tokens: {} } // biome-ignore format: one line
  for (const [processor, bos] of [
    [template, false],
    [{ type: "Sequence", processors: [{ type: "ByteLevel" }, template] }, false],
    [undefined, true],
  ] as const) {
    const folder = await tokenizerFolder()
    if (processor) edit(join(folder, "tokenizer.json"), (json) => Object.assign(json, { post_processor: processor }))
    if (bos) edit(join(folder, "tokenizer_config.json"), (config) => Object.assign(config, { add_bos_token: true, bos_token: "<|endoftext|>" })) // biome-ignore format: one line
    const tokenizer = await open(folder)
    expect(tokenizer.decode(tokenizer.textPrefix)).toBe("<|endoftext|>")
  }
  expect(textPrefix(template, {}, undefined)).toEqual(["<|endoftext|>"])
  expect(textPrefix(undefined, { add_bos_token: false }, "<s>")).toEqual([])
})
