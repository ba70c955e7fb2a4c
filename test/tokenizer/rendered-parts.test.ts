import { describe, expect, it } from "vitest"
import type { ChatMessage } from "../../src/tokenizer/tokenizer.ts"
import { chatMl, families, family, qwen } from "./templates.ts"

const user = (content: string): ChatMessage => ({ role: "user", content })
const said = (content: string, more: Partial<ChatMessage> = {}): ChatMessage => ({
  role: "assistant",
  content,
  ...more,
})
const call = (name: string, given: object) => ({ id: "c1", type: "function", function: { name, arguments: given } })
const result = (content: string, more: Partial<ChatMessage> = {}): ChatMessage => ({
  ...{ role: "tool", tool_call_id: "c1", content },
  ...more,
})
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
const tools = [{ type: "function", function: { name: "find", description: "Finds it.", parameters } }]
const asked = [user("Where?"), said("", { tool_calls: [call("find", { city: "Rome" })] })]

interface Sent {
  readonly messages: readonly ChatMessage[]
  readonly tools?: readonly object[]
}

const sent: Readonly<Record<string, Sent>> = {
  "a system message": { messages: [{ role: "system", content: "Be kind." }, user("Hi")] },
  "white space around": { messages: [user("\n  Hi \n"), said("  Ho\n\n"), user("Bye")] },
  "empty contents": { messages: [user(""), said(""), user("Bye")] },
  "quotes and lines": { messages: [user('Say "a\\b"\n\tnow'), said('"'), user("é ü\n\n\n<b>")] },
  "contents that are words of the template": { messages: [user("user"), said("a"), user("<")] },
  tools: { messages: [user("Where?")], tools },
  "a call": { messages: [...asked, user("And?")] },
  "a call without arguments": { messages: [user("Now?"), said("", { tool_calls: [call("time", {})] }), user("And?")] },
  "two calls": {
    messages: [user("Go"), said("", { tool_calls: [call("a", { x: 1 }), call("b", { x: 1 })] }), user("?")],
  },
  "a text beside a call": { messages: [user("Go"), said("Well.", { tool_calls: [call("a", {})] }), user("?")] },
  "a result": { messages: [...asked, result('in "Italy"\n'), user("So?")], tools },
  "a result with its tool's name": { messages: [...asked, result("Italy", { name: "find" })], tools },
  "a result with another name": { messages: [...asked, result("Italy", { name: "other" })], tools },
  "a name": { messages: [user("Hi"), said("Ho"), { ...user("Bye"), name: "ann" }] },
  "a thought": { messages: [user("Hi"), said("Ho", { reasoning_content: "Hm." }), user("Bye")] },
  "a thought within a reply": { messages: [user("Hi"), said("<think>\nHm.\n</think>\n\nHo"), user("Bye")] },
}

const last = "messages[1].tool_calls[0]"
/** What each family does not render; the others' templates reject by themselves, with a reason of their own. */
const refused: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  tools: { "plain ChatML": "tools", "SmolLM2's": "tools", "Phi's": "tools" },
  "a call": { "plain ChatML": last, "SmolLM2's": last, "Phi's": last },
  "a call without arguments": { "plain ChatML": last, "SmolLM2's": last, "Phi's": last },
  "two calls": { "plain ChatML": last, "SmolLM2's": last, "Phi's": last, "Llama 3's": "one call at a time" },
  "a text beside a call": {
    ...{ "plain ChatML": last, "SmolLM2's": last, "Phi's": last },
    ...{ "Llama 3's": "messages[1].content", "Mistral's": "messages[1].content" },
  },
  "a result": { "plain ChatML": last, "SmolLM2's": last, "Phi's": last },
  "a result with its tool's name": { "plain ChatML": last, "SmolLM2's": last, "Phi's": last },
  "a result with another name": {
    ...{ "plain ChatML": last, "SmolLM2's": last, "Phi's": last },
    ...Object.fromEntries(["Qwen2.5's", "Qwen3's", "Llama 3's", "Mistral's"].map((name) => [name, "messages[2].name"])),
  },
  "a name": Object.fromEntries(
    Object.keys(families)
      .filter((name) => name !== "tags of tools")
      .map((name) => [name, "messages[2].name"]),
  ),
  "a thought": Object.fromEntries(
    Object.keys(families)
      .filter((name) => name !== "Qwen3's")
      .map((name) => [name, "messages[1].reasoning_content"]),
  ),
}

describe.each(Object.entries(families))("a template like %s", (name, template) => {
  it.each(Object.entries(sent))("renders %s, or the chat is rejected", async (what, { messages, tools }) => {
    const tokenizer = await family(template)
    const missing = refused[what]?.[name]
    for (let again = 0; again < 2; again++) {
      const encoded = tokenizer.encodeChat(messages, { variables: tools ? { tools } : {} })
      if (missing === undefined) await encoded
      else
        await expect(encoded).rejects.toMatchObject({
          code: "BAD_TOKENIZER",
          message: expect.stringContaining(missing),
        })
    }
  })
})

describe("parts that a template omits", () => {
  const losing: [string, (template: string) => string, Sent, string][] = [
    [
      "the system's messages behind the first",
      () => qwen(false).replace("or (message.role == 'system' and not loop.first)", ""),
      { messages: [user("a"), { role: "system", content: "Now be kind." }, user("b")] },
      "messages[1].content",
    ],
    [
      "all but the last message of the user",
      (template) => template.replace("{% for message in messages %}", "{% for message in messages[-1:] %}"),
      { messages: [user("a"), said("b"), user("a")] },
      "messages[0].content",
    ],
    [
      "the end of a long content",
      (template) => template.replace("message['content']", "message['content'][:100]"),
      { messages: [user("This is more than that. ".repeat(10))] },
      "messages[0].content",
    ],
    [
      "the arguments of calls",
      () => qwen(false).replace("{{- tool_call.arguments | tojson }}", "{{- '{}' }}"),
      { messages: [...asked, user("And?")] },
      "messages[1].tool_calls[0].function.arguments",
    ],
    [
      "the results of tools",
      () => qwen(false).replace("{{- message.content }}", ""),
      { messages: [...asked, result("Italy")] },
      "messages[2].content",
    ],
    [
      "the descriptions of tools",
      () => qwen(false).replace("{{- tool | tojson }}", "{{- tool.function.name }}"),
      { messages: [user("a")], tools },
      "tools[0].function.description",
    ],
    [
      "the parameters of tools",
      () => qwen(false).replace("{{- tool | tojson }}", "{{- tool.function.name + tool.function.description }}"),
      { messages: [user("a")], tools },
      "tools[0].function.parameters",
    ],
    [
      "all tools but the first",
      () => qwen(false).replace("{%- for tool in tools %}", "{%- for tool in tools[:1] %}"),
      { messages: [user("a")], tools: [...tools, { type: "function", function: { name: "more", parameters: {} } }] },
      "tools",
    ],
  ]
  it.each(losing)("is named: %s", async (_, change, { messages, tools }, field) => {
    const template = change(chatMl)
    expect([chatMl, qwen(false)]).not.toContain(template)
    const tokenizer = await family(template)
    await tokenizer.encodeChat([user("a")])
    await expect(tokenizer.encodeChat(messages, { variables: tools ? { tools } : {} })).rejects.toMatchObject({
      message: expect.stringContaining(`${field} does not appear in the prompt`),
    })
  })

  it("is rejected for a content after others of the same shape were rendered", async () => {
    const tokenizer = await family(
      chatMl.replace("message['content']", "(message['content'] if 'X' in message['content'] else '')"),
    )
    await tokenizer.encodeChat([user("X1")])
    await expect(tokenizer.encodeChat([user("y1")])).rejects.toMatchObject({ code: "BAD_TOKENIZER" })
    await tokenizer.encodeChat([user("X2")])
  })

  it("are undefined if the template changes contents", async () => {
    const upper = await family(chatMl.replace("message['content']", "message['content'].replace('a', 'b')"))
    const { tokens } = await upper.encodeChat([user("a banana")])
    expect(upper.decode(tokens)).toContain("b bbnbnb")
  })

  it("are determined once per shape, with one more render", async () => {
    const tokenizer = await family(chatMl)
    const { renderChat } = tokenizer
    let renders = 0
    tokenizer.renderChat = (...given) => {
      renders++
      return renderChat.apply(tokenizer, given)
    }
    const counts: number[] = []
    for (const content of ["one", "two", "three"]) {
      await tokenizer.encodeChat([user(content)])
      counts.push(renders)
      renders = 0
    }
    expect(counts.slice(1)).toEqual([1, 1])
  })
})
