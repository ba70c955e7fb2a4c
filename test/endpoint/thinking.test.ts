import { expect, it } from "vitest"
import { chatMl } from "../tokenizer/templates.ts"
import { type Answer, speaking, thinks } from "./speaking.ts"

// How much to think, as each API has it, in the variables of the chat template.

const messages = [{ role: "user", content: "Hi" }]
const shows = () => `{{ 'think ' ~ (enable_thinking if enable_thinking is defined else 'unsaid') }}\n${chatMl}`
const ranks = () => `{{ 'effort ' ~ (reasoning_effort or 'unsaid') }}\n${chatMl}`
const effort = (reasoning_effort: string) => ["chat/completions", { messages, reasoning_effort }] as const
const claude = (more: object) => ["messages", { messages, max_tokens: 9, ...more }] as const

it.each<[string, (template: string) => string, readonly [path: string, body: object]]>([
  ["think unsaid", shows, ["chat/completions", { messages }]],
  ["think False", shows, effort("none")],
  ["think True", shows, effort("low")],
  ["think False", shows, ["chat/completions", { messages, reasoning: { enabled: false } }]],
  ["think False", shows, ["responses", { input: "Hi", reasoning: { effort: "none" } }]],
  ["think True", shows, ["responses", { input: "Hi", reasoning: { effort: "high" } }]],
  ["think False", shows, claude({ thinking: { type: "disabled" } })],
  ["think True", shows, claude({ thinking: { type: "enabled", budget_tokens: 1024 } })],
  ["think unsaid", shows, claude({ thinking: { type: "adaptive" } })],
  ["think True", shows, claude({ output_config: { effort: "max" } })],
  ["think False", shows, claude({ thinking: { type: "disabled" }, output_config: { effort: "low" } })],
  ["think True", shows, ["chat/completions", { messages, reasoning_effort: "none", chat_template_kwargs: { enable_thinking: true } }]], // biome-ignore format: one line
  ["effort unsaid", ranks, ["chat/completions", { messages }]],
  ["effort medium", ranks, effort("medium")],
  ["effort high", ranks, ["responses", { input: "Hi", reasoning: { effort: "high" } }]],
  ["effort low", ranks, claude({ output_config: { effort: "low" } })],
])("%s", async (begins, template, [path, body]) => {
  const { post, policy, tokenizer } = await speaking(["Yes."], { template })
  expect((await post(path, body)).status).toBe(200)
  expect(tokenizer.decode(policy.requests[0]!.prompt).split("\n")[0]).toBe(begins)
})

it.each<[string, RegExp, ((template: string) => string) | undefined, readonly [path: string, body: object]]>([
  ["an effort of a model without one", /reasoning_effort cannot be set/, undefined, effort("low")],
  ["no thinking of a model that always thinks", /cannot turn thinking off/, thinks, effort("none")],
  [
    "the same in the Messages API",
    /thinking.type cannot turn thinking off/,
    thinks,
    claude({ thinking: { type: "disabled" } }),
  ],
])("rejects %s", async (_, message, template, [path, body]) => {
  const { post, policy } = await speaking(["Yes."], template ? { template } : {})
  const response = await post(path, body)
  const { error }: Answer = await response.json()
  expect([response.status, error.message]).toEqual([400, expect.stringMatching(message)])
  expect(policy.requests).toEqual([])
})
