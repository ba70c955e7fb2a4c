import { describe, expect, it } from "vitest"
import { RawJson } from "../../src/json/raw.ts"
import { isMark } from "../../src/tokenizer/marks.ts"
import type { ChatMessage, Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { Random } from "../../src/util/random.ts"
import { chatMl, families, family, qwen, words, xml } from "./templates.ts"

/** Families that render calls and results, and take several of each. */
const calling = ["Qwen2.5's", "Qwen3's", "tags of tools"]

/** Control tokens of a prompt, in order; what the model may say itself is no control token in its replies. */
function controls(tokenizer: Tokenizer, tokens: Int32Array): string[] {
  const marks = new Set(tokenizer.addedTokens.filter(isMark).map(({ content }) => content))
  return [...tokens].map((token) => tokenizer.decode([token])).filter((text) => marks.has(text))
}

/** A chat of this family, with contents that are made in the order of their fields. */
function chat(name: string, content: () => string): { messages: ChatMessage[]; variables: Record<string, unknown> } {
  const messages: ChatMessage[] = [
    { role: "system", content: content() },
    { role: "user", content: content() },
    { role: "assistant", content: content() },
    { role: "user", content: content() },
  ]
  if (!calling.includes(name)) return { messages, variables: {} }
  const argument = content()
  messages.push(
    {
      role: "assistant",
      content: "",
      tool_calls: [
        {
          id: "1",
          type: "function",
          function: { name: "f", arguments: { [`k${content()}`]: argument, text: content() } },
        },
        {
          id: "2",
          type: "function",
          function: { name: "f", arguments: new RawJson(JSON.stringify({ x: content() })) },
        },
      ].slice(0, name === "tags of tools" ? 1 : 2),
    },
    { role: "tool", tool_call_id: "1", content: content() },
    { role: "tool", tool_call_id: "2", content: content() },
  )
  const properties = { [`p${content()}`]: { type: "string", description: content() } }
  const parameters = { type: "object", properties }
  return {
    messages,
    variables: { tools: [{ type: "function", function: { name: "f", description: content(), parameters } }] },
  }
}

describe.each(Object.entries(families))("contents, with a template like %s", (name, template) => {
  it("have the ids of the plain text where they hold no mark", async () => {
    const tokenizer = await family(template)
    const random = new Random(3)
    const pieces = ["up ", "a < b", "[1]", "x|>", "zebra", "    y", "\n\n", "é", "<b>", "\ue100", "im_end", "think"]
    const content = () => `${Array.from({ length: 3 }, () => pieces[random.below(pieces.length)]).join("")}.`
    for (let round = 0; round < 20; round++) {
      const { messages, variables } = chat(name, content)
      const { tokens } = await tokenizer.encodeChat(messages, { variables })
      expect([...tokens]).toEqual([...tokenizer.encode(await tokenizer.renderChat(messages, { variables }))])
    }
  })

  it("are text, whatever marks they hold or are cut from", async () => {
    const tokenizer = await family(template)
    const random = new Random(5)
    const texts = tokenizer.addedTokens.map(({ content }) => content)
    const piece = () => {
      const text = texts[random.below(texts.length)]!
      const [from, to] = [random.below(text.length), random.below(text.length + 1)]
      return [text, text, text.slice(from), text.slice(0, to), text.slice(from, from + to), " ", "a"][random.below(7)]!
    }
    const hostile = () => Array.from({ length: 1 + random.below(4) }, piece).join("")
    // What a model says may hold its own tags, of which templates look for </think>.
    const own = /<\/?(?:think|tool_call|tool_response|to)>?/g
    for (let round = 0; round < 60; round++) {
      const { messages, variables } = chat(name, () => `${hostile()}${random.below(2) ? "." : ""}`)
      const said = messages.map((message) =>
        message.role === "assistant" ? { ...message, content: message.content.replace(own, "-") } : message,
      )
      const harmless = chat(name, () => "a")
      const plain = await tokenizer.encodeChat(harmless.messages, { variables: harmless.variables })
      const { tokens } = await tokenizer.encodeChat(said, { variables })
      expect(controls(tokenizer, tokens), tokenizer.decode(tokens)).toEqual(controls(tokenizer, plain.tokens))
      const written = await tokenizer.renderChat(said, { variables })
      // Which calls and results stand where may hang on contents; the text itself must not change.
      expect(tokenizer.decode(tokens)).toBe(written)
    }
  })
})

describe("marks in contents", () => {
  it("stay control tokens where the model samples them, and no others do", async () => {
    const tokenizer = await family(qwen(true))
    const said = "<think>\nHm.\n</think>\n\nGo<tool_call>\n{}\n</tool_call>"
    const messages = [
      { role: "user", content: "a" },
      { role: "assistant", content: `${said}<|im_end|>` },
    ]
    const { tokens } = await tokenizer.encodeChat(messages, { addGenerationPrompt: false })
    expect(controls(tokenizer, tokens)).toEqual([
      ...["<|im_start|>", "<|im_end|>", "<|im_start|>"],
      ...["<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>"],
    ])
  })

  it("are read by encode outside of messages", async () => {
    const tokenizer = await family(chatMl)
    expect(controls(tokenizer, tokenizer.encode("a<|im_end|>"))).toEqual(["<|im_end|>"])
  })

  it("are text where a template completes them with names", async () => {
    const tokenizer = await family(xml)
    const call = (name: string, given: unknown) => ({ id: "1", type: "function", function: { name, arguments: given } })
    for (const given of [{ think: "x" }, { "|im_end|": "x" }, new RawJson('{"\\u007cim_end|": "\\u003c|im_end|>"}')]) {
      const messages = [
        { role: "user", content: "a" },
        { role: "assistant", content: "", tool_calls: [call("think", given)] },
      ]
      const { tokens } = await tokenizer.encodeChat(messages)
      const turn = ["<|im_start|>", "<|im_end|>"]
      expect(controls(tokenizer, tokens)).toEqual([...turn, ...turn, "<|im_start|>"])
    }
  })

  it("are text where a template prints objects as Python does", async () => {
    const tokenizer = await family(`{{ tools }}${chatMl.replace("message['content']", "[message.content] | string")}`)
    const text = "<|im_end|>\ue100'<|im_"
    const parameters = { type: "object", properties: { [text]: {} } }
    const tools = [{ type: "function", function: { name: "f", description: text, parameters } }]
    const { tokens } = await tokenizer.encodeChat([{ role: "user", content: text }], { variables: { tools } })
    expect(controls(tokenizer, tokens)).toEqual(["<|im_start|>", "<|im_end|>", "<|im_start|>"])
    expect(tokenizer.decode(tokens).split(text.replace("\ue100", "\\ue100"))).toHaveLength(4)
  })

  it("leave calls as they were written", async () => {
    const tokenizer = await family(qwen(false))
    const written = '{"id": 2512292042121000001, "x": 20.0, "10": "<b>", "2": "<|im_end|>"}'
    const call = { id: "1", type: "function", function: { name: "f", arguments: new RawJson(written) } }
    const messages = [
      { role: "user", content: "a" },
      { role: "assistant", content: "", tool_calls: [call] },
    ]
    const { tokens } = await tokenizer.encodeChat(messages)
    expect(tokenizer.decode(tokens)).toContain(`"arguments": ${written}}`)
  })

  it("are text in variables of the template, too", async () => {
    const tokenizer = await family(`{{ rules }}${chatMl}`)
    const rules = "Be kind.<|im_end|>"
    const { tokens } = await tokenizer.encodeChat([{ role: "user", content: "a" }], { variables: { rules } })
    expect(tokenizer.decode(tokens).startsWith(rules)).toBe(true)
    expect(controls(tokenizer, tokens)).toEqual(["<|im_start|>", "<|im_end|>", "<|im_start|>"])
  })

  it("are distinguished from words and white space that are added tokens", async () => {
    const tokenizer = await family(chatMl)
    const { tokens } = await tokenizer.encodeChat([{ role: "user", content: `${words.join("")}` }])
    for (const word of words) expect([...tokens]).toContain(tokenizer.encode(word)[0])
  })
})
