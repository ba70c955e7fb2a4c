import { describe, expect, it } from "vitest"
import type { CompletionGeneratorSetup } from "../../src/chat/completion-generator.ts"
import { type Answer, speaking } from "./speaking.ts"

const long = Array.from({ length: 300 }, (_, at) => `word ${at}`).join(" ")

const spellings = {
  max_tokens: (n?: number) => ["chat/completions", n === undefined ? {} : { max_tokens: n }] as const,
  max_completion_tokens: (n?: number) =>
    ["chat/completions", n === undefined ? {} : { max_completion_tokens: n }] as const,
  max_output_tokens: (n?: number) => ["responses", n === undefined ? {} : { max_output_tokens: n }] as const,
}

/** How many tokens a reply has, and how it ends, where the request asks for at most `asked`. */
async function replied(
  spelling: keyof typeof spellings,
  asked: number | undefined,
  maxCompletionTokens: CompletionGeneratorSetup["maxCompletionTokens"],
  room?: number,
) {
  const measured = await speaking([long])
  await measured.post("chat/completions", { messages: [{ role: "user", content: "Go." }] })
  const maxPositions = room === undefined ? 4096 : measured.policy.requests[0]!.prompt.length + room
  const { post, policy } = await speaking([long], { maxCompletionTokens, maxPositions })
  const [path, more] = spellings[spelling](asked)
  const asks = { messages: [{ role: "user", content: "Go." }], input: "Go." }
  const { [path === "responses" ? "messages" : "input"]: _, ...body } = asks
  const response = await post(path, { ...body, ...more })
  expect(response.status).toBe(200)
  const answer: Answer = await response.json()
  const ended = path === "responses" ? answer.incomplete_details?.reason : answer.choices[0].finish_reason
  expect(ended).toBe(path === "responses" ? "max_output_tokens" : "length")
  const { completion_tokens, output_tokens } = answer.usage
  expect(policy.requests[0]!.maxTokens).toBe(completion_tokens ?? output_tokens)
  return completion_tokens ?? output_tokens
}

describe.each(Object.keys(spellings) as (keyof typeof spellings)[])("%s", (spelling) => {
  it("shortens a run's limit of a completion, and never raises it", async () => {
    const most = { value: 16, fixed: true }
    expect(await replied(spelling, undefined, most)).toBe(16)
    expect(await replied(spelling, 5, most)).toBe(5)
    for (const beyond of [17, 500, 1e6, 2 ** 31]) expect(await replied(spelling, beyond, most)).toBe(16)
  })

  it("is free elsewhere, up to what the model's positions leave", async () => {
    const usual = { value: 16, fixed: false }
    expect(await replied(spelling, undefined, usual)).toBe(16)
    expect(await replied(spelling, 50, usual)).toBe(50)
    for (const fixed of [true, false])
      for (const asked of [undefined, 9, 2 ** 31])
        expect(await replied(spelling, asked, { value: 16, fixed }, 7), `${asked}`).toBe(7)
  })
})

it("a prompt that leaves no room at all is rejected, whatever is asked for", async () => {
  const { post } = await speaking(["yes"], { maxPositions: 10 })
  for (const max_tokens of [undefined, 1, 500]) {
    const response = await post("chat/completions", { messages: [{ role: "user", content: long }], max_tokens })
    const { error }: Answer = await response.json()
    expect([response.status, error.param, error.code]).toEqual([400, "messages", "context_length_exceeded"])
  }
})
