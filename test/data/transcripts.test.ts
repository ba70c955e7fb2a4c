import { describe, expect, it } from "vitest"
import { type Answer, speaking, thinks } from "../endpoint/speaking.ts"
import { chatMl, family } from "../tokenizer/templates.ts"
import { codec, examplesOf, marked } from "./examples.ts"

const user = (content: string) => ({ role: "user", content })
const said = (content: string, more: object = {}) => ({ role: "assistant", content, ...more })
const tools = [{ type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } }]
const call = (given: string) => `<tool_call>\n{"name": "f", "arguments": ${given}}\n</tool_call>`
const turn = (role: string, content: string) => `<|im_start|>${role}\n${content}<|im_end|>\n`
const completion = (content: string) => `<|im_start|>assistant\n[${content}<|im_end|>]`

describe("a transcript", () => {
  it("is one row, of which every completion is learned up to its end", async () => {
    const tokenizer = await codec()
    const messages = [{ role: "system", content: "Be brief." }, user("Hi"), said("Ho"), user("Bye"), said("So long")]
    const [example, ...others] = await examplesOf(tokenizer, [{ messages }])
    expect(others).toEqual([])
    expect(example).toMatchObject({ place: "line 1", sequences: [expect.anything()] })
    const [row] = example!.sequences
    expect(marked(tokenizer, row!)).toBe(
      `${turn("system", "Be brief.")}${turn("user", "Hi")}${completion("Ho")}\n${turn("user", "Bye")}${completion("So long")}`,
    )
    const [first] = row!.segments
    expect([...row!.tokens.subarray(first!.start, first!.start + first!.length)]).toEqual([
      ...tokenizer.encode("Ho"),
      tokenizer.eosTokens[0],
    ])
  })

  it.each<[string, ((template: string) => string) | undefined, string]>([
    ["", undefined, ""],
    [", with thoughts that the model opens", undefined, "<think>\nHm.\n</think>\n\n"],
    [", with thoughts that the prompt opens", thinks, "Hm.\n</think>\n\n"],
  ])("is token for token what the endpoint asked and the model said%s", async (_, template, thought) => {
    const completions = [`${thought}${call('{"x": 1}')}`, `${thought}It is 42.`]
    const { post, policy, tokenizer } = await speaking(completions, template ? { template } : {})
    const messages: object[] = [user("How much?")]
    for (const _ of completions) {
      const { choices }: Answer = await (await post("chat/completions", { messages, tools })).json()
      const { message } = choices[0]
      messages.push(message)
      for (const { id } of message.tool_calls ?? []) messages.push({ role: "tool", tool_call_id: id, content: "42" })
    }
    const [{ sequences }] = (await examplesOf(tokenizer, [{ messages, tools }])) as [Answer]
    const [row] = sequences
    expect(row.segments).toHaveLength(2)
    for (const [index, { start, length }] of row.segments.entries()) {
      expect([...row.tokens.subarray(0, start)]).toEqual([...policy.requests[index]!.prompt])
      expect([...row.tokens.subarray(start, start + length)]).toEqual(policy.tokens(completions[index]!))
    }
  })

  it("is rejected if the template does not render its thinking", async () => {
    const tokenizer = await family(chatMl)
    const messages = [user("Hi"), said("Ho", { reasoning_content: "Hm." })]
    await expect(examplesOf(tokenizer, [{ messages }])).rejects.toMatchObject({
      code: "BAD_DATA",
      message: expect.stringMatching(/line 1: messages\[1\]\.reasoning_content does not appear in the prompt/),
    })
  })

  it("of Hugging Face, with calls without ids and arguments as objects, is that of OpenAI", async () => {
    const tokenizer = await codec()
    const [name, given] = ["f", { x: 1 }]
    const openai = {
      messages: [
        user("Go"),
        said("", {
          tool_calls: [
            { id: "1", type: "function", function: { name, arguments: JSON.stringify(given) } },
            { id: "2", type: "function", function: { name: "g", arguments: "{}" } },
          ],
        }),
        { role: "tool", tool_call_id: "1", content: "one" },
        { role: "tool", tool_call_id: "2", content: "two" },
        said("Done"),
      ],
      tools,
    }
    const calls = [
      { type: "function", function: { name, arguments: given } },
      { function: { name: "g", arguments: {} } },
    ]
    const others = [
      {
        messages: [
          { ...user("Go"), tool_calls: null, name: null },
          said("", { content: null, tool_calls: calls }),
          { role: "tool", name: "f", content: "one" },
          { role: "tool", name: "g", content: "two", tool_call_id: null },
          said("Done", { tool_calls: null }),
        ],
        tools: JSON.stringify(tools),
      },
      { prompt: openai.messages.slice(0, 1), completion: openai.messages.slice(1), tools: [tools[0]!.function], id: 7 },
    ]
    const [one, ...rest] = await examplesOf(tokenizer, [openai, ...others])
    expect(marked(tokenizer, one!.sequences[0]!)).toContain(
      completion(`${call('{"x": 1}')}\n<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>`),
    )
    for (const other of rest) expect(other.sequences).toEqual(one!.sequences)
    const old = {
      messages: [
        user("Go"),
        said("", { function_call: { name, arguments: "{}" } }),
        { role: "function", name, content: "1" },
      ],
    }
    const [{ sequences }] = (await examplesOf(tokenizer, [old])) as [Answer]
    expect(marked(tokenizer, sequences[0])).toContain(completion(call("{}")))
  })

  it("is learned as its messages specify", async () => {
    const tokenizer = await codec()
    const learned = async (first: object, last: object, completions: "all" | "last" = "all") => {
      const messages = [user("a"), said("1", first), user("b"), said("2", last)]
      const [{ sequences }] = (await examplesOf(tokenizer, [{ messages }], { completions })) as [Answer]
      return [
        marked(tokenizer, sequences[0]).match(/\[\d/g)!.join(""),
        sequences[0].segments.map(({ weights }: Answer) => weights?.[0]),
      ]
    }
    const both = "[1[2"
    expect(await learned({}, {})).toEqual([both, [undefined, undefined]])
    expect(await learned({ weight: 0 }, { weight: 1 })).toEqual(["[2", [undefined]])
    expect(await learned({ train: true }, { train: false })).toEqual(["[1", [undefined]])
    expect(await learned({ weight: 0.5 }, {})).toEqual([both, [0.5, undefined]])
    expect(await learned({}, {}, "last")).toEqual(["[2", [undefined]])
    expect(await learned({ weight: 1 }, {}, "last")).toEqual([both, [undefined, undefined]])
  })

  it("is one row per completion if its template drops earlier text", async () => {
    const thought =
      "('<think>' + message['reasoning_content'] + '</think>' if loop.last and message['role'] == 'assistant' else '')"
    const tokenizer = await family(chatMl.replace("+ message['content']", `+ ${thought} + message['content']`))
    const messages = [
      user("a"),
      said("1", { reasoning_content: "x" }),
      user("b"),
      said("2", { reasoning_content: "y" }),
    ]
    const [{ sequences }] = (await examplesOf(tokenizer, [{ messages }])) as [Answer]
    expect(sequences.map((row: Answer) => marked(tokenizer, row))).toEqual([
      `${turn("user", "a")}${completion("<think>x</think>1")}`,
      `${turn("user", "a")}${turn("assistant", "1")}${turn("user", "b")}${completion("<think>y</think>2")}`,
    ])
  })

  it("receives the variables of its line", async () => {
    const tokenizer = await codec((template) => `{{ mood }}${template}`)
    const line = { messages: [user("a"), said("1")], chat_template_kwargs: { mood: "Gay. " } }
    const [{ sequences }] = (await examplesOf(tokenizer, [line])) as [Answer]
    expect(marked(tokenizer, sequences[0])).toBe(`Gay. ${turn("user", "a")}${completion("1")}`)
  })
})

it("gets an end token even if the template has no end of turns", async () => {
  const tokenizer = await codec(
    () =>
      "{% for message in messages %}{{ message.role + ': ' + message.content + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}",
  )
  const [{ sequences }] = (await examplesOf(tokenizer, [
    { messages: [user("a"), said("1"), user("b"), said("2")] },
  ])) as [Answer]
  expect(marked(tokenizer, sequences[0])).toBe("user: a\nassistant: [1\n<|im_end|>]user: b\nassistant: [2\n<|im_end|>]")
})

/** PNG of one pixel. */
const onePixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

describe("a line is rejected with its number", () => {
  const fine = { messages: [user("a"), said("1")] }
  const refusals: [string, unknown, RegExp][] = [
    ["that is no JSON", "{", /line 2 is not JSON/],
    ["that is no object", "[1]", /line 2: The line must be an object, as \{"messages"/],
    ["without messages", { conversations: [] }, /line 2: messages is missing; give the conversation/],
    ["whose messages are no list", { messages: "a" }, /line 2: messages must be a list of messages/],
    ["of no known role", { messages: [{ role: "human", content: "a" }] }, /messages\[0\]\.role must be one of system/],
    ["without content", { messages: [{ role: "user" }, said("1")] }, /messages\[0\]\.content is missing/],
    [
      "with a part of another type",
      { messages: [{ role: "user", content: [{ type: "input_audio" }] }, said("1")] },
      /content\[0\]\.type must be/,
    ],
    [
      "with an image without its data",
      { messages: [{ role: "user", content: [{ type: "image_url" }] }, said("1")] },
      /line 2: messages\[0\]\.content\[0\]\.image_url/,
    ],
    [
      "with an image, for a model that reads text only",
      { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: onePixel } }] }, said("1")] },
      /line 2: messages\[0\] has an image, but the model reads text only/,
    ],
    ["without a reply", { messages: [user("a")] }, /messages has no completion to learn/],
    [
      "whose replies are all left out",
      { messages: [user("a"), said("1", { weight: 0 })] },
      /has no completion to learn/,
    ],
    [
      "that begins with a reply",
      { messages: [said("1"), user("a")] },
      /messages\[0\] is a completion without a prompt.*"weight": 0/,
    ],
    ["with an invalid weight", { messages: [user("a"), said("1", { weight: -1 })] }, /\[1\]\.weight must be a number/],
    [
      "with an answer to no call",
      { messages: [user("a"), { role: "tool", content: "1" }, said("2")] },
      /messages\[1\] answers a tool call/,
    ],
    ["with tools that are none", { ...fine, tools: "f" }, /tools must be a list, or the JSON of one/],
    ["with a tool without a name", { ...fine, tools: [{ description: "f" }] }, /tools\[0\]\.function\.name is missing/],
    ["with variables that are none", { ...fine, chat_template_kwargs: 1 }, /chat_template_kwargs must be an object/],
    ["of a pair with one side", { prompt: "a", chosen: "1" }, /line 2: rejected is missing/],
    ["of a pair of equals", { prompt: "a", chosen: "1", rejected: "1" }, /rejected equals chosen/],
    ["of a pair without a prompt", { chosen: "1", rejected: "2" }, /prompt is missing/],
  ]

  it("with any fault", async () => {
    const tokenizer = await codec()
    for (const [which, line, message] of refusals)
      await expect(examplesOf(tokenizer, [fine, line]), which).rejects.toMatchObject({
        code: "BAD_DATA",
        message: expect.stringMatching(message),
      })
  })

  it("that the template rejects", async () => {
    const tokenizer = await codec(
      (template) => `{% if messages|length > 2 %}{{ raise_exception('too many') }}{% endif %}${template}`,
    )
    const messages = [user("a"), said("1"), user("b"), said("2")]
    await expect(examplesOf(tokenizer, [fine, { messages }])).rejects.toMatchObject({
      code: "BAD_DATA",
      message: expect.stringMatching(/line 2: The model's chat template failed: too many/),
    })
  })
})

describe("a preference pair", () => {
  it("is read equally in every spelling", async () => {
    const tokenizer = await codec()
    const [asked, good, bad] = [[user("a")], [said("1")], [said("2")]]
    const [one, ...others] = await examplesOf(tokenizer, [
      { prompt: asked, chosen: good, rejected: bad },
      { prompt: "a", chosen: "1", rejected: "2" },
      { messages: asked, chosen: good[0], rejected: bad[0] },
      { chosen: [...asked, ...good], rejected: [...asked, ...bad] },
      { prompt: "a", chosen: [...asked, ...good], rejected: [...asked, ...bad], messages: [...asked, ...good] },
      { input: { messages: asked }, preferred_output: good, non_preferred_output: bad },
    ])
    const texts = (example: typeof one) =>
      [example!.sequences, example!.rejected!].map(([row]) => marked(tokenizer, row!))
    expect(texts(one)).toEqual([`${turn("user", "a")}${completion("1")}`, `${turn("user", "a")}${completion("2")}`])
    expect(others.map(texts)).toEqual(others.map(() => texts(one)))
  })

  it("is compared from the point where its sides differ", async () => {
    const tokenizer = await codec()
    const shared = [user("a"), said("1"), user("b")]
    const on = (last: string) => [...shared, said(last), user("c"), said("!")]
    const [{ sequences, rejected }] = (await examplesOf(tokenizer, [{ chosen: on("2"), rejected: on("3") }])) as [
      Answer,
    ]
    const learned = ([row]: Answer) => marked(tokenizer, row).match(/\[[^\]]*/g)
    expect(learned(sequences)).toEqual(["[2<|im_end|>", "[!<|im_end|>"])
    expect(learned(rejected)).toEqual(["[3<|im_end|>", "[!<|im_end|>"])
  })
})
