import { expect, it } from "vitest"
import { chatMl } from "../tokenizer/templates.ts"
import { type Answer, speaking } from "./speaking.ts"

const template = () => `{{ mood }}\n${chatMl}`
const messages = [{ role: "user", content: "Hi" }]

it("a request sets variables of the template", async () => {
  const { post, policy, tokenizer } = await speaking(["Yes."], { template })
  for (const mood of ["calm", "gay", "calm"])
    expect((await post("chat/completions", { messages, chat_template_kwargs: { mood } })).status).toBe(200)
  await post("chat/completions", { messages, chat_template_kwargs: null })
  const [calm, gay, again, plain] = policy.requests
  expect(policy.requests.map(({ prompt }) => tokenizer.decode(prompt).split("\n")[0])).toEqual([
    "calm",
    "gay",
    "calm",
    "",
  ])
  expect(gay!.key).not.toEqual(calm!.key)
  expect(plain!.key).not.toEqual(calm!.key)
  expect(again!.prompt).toEqual(calm!.prompt)
})

it("a completion is continued only under the variables that it was given under", async () => {
  const { post, policy, tokenizer } = await speaking(["Yes."], { template })
  const { choices }: Answer = await (
    await post("chat/completions", { messages, chat_template_kwargs: { mood: "calm" } })
  ).json()
  const more = [...messages, choices[0].message, { role: "user", content: "Sure?" }]
  await post("chat/completions", { messages: more, chat_template_kwargs: { mood: "gay" } })
  expect(tokenizer.decode(policy.requests[1]!.prompt)).toMatch(/^gay\n/)
})

it.each([
  ["chat_template_kwargs", "calm", /must be an object/],
  ["chat_template_kwargs", { messages: [] }, /must not contain messages/],
  ["chat_template_kwargs", { tools: [] }, /must not contain tools/],
  ["chat_template_kwargs.modd", { modd: "calm" }, /is not read by the model's chat template/],
])("%s is rejected by its name: %j", async (param, value, message) => {
  const { post } = await speaking(["Yes."], { template })
  const response = await post("chat/completions", { messages, chat_template_kwargs: value })
  expect(response.status).toBe(400)
  expect(((await response.json()) as Answer).error).toMatchObject({ param, message: expect.stringMatching(message) })
})
