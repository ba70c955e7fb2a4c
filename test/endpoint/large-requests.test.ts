import { expect, it, onTestFinished } from "vitest"
import { openGateway } from "../../src/agents/gateway.ts"
import { tokenText } from "../../src/chat/dialect.ts"
import { type Answer, speaking } from "./speaking.ts"

async function opened(maxPositions = 512) {
  const { voice, tokenizer } = await speaking(["yes"], { maxPositions, temperature: { value: 1, fixed: false } })
  const gateway = await openGateway()
  onTestFinished(() => gateway[Symbol.asyncDispose]())
  const { apiKey } = gateway.open({ generator: voice, models: ["policy"], textOf: tokenText(tokenizer) })
  return async (path: string, body: object | string): Promise<{ status: number; told: Answer }> => {
    const response = await fetch(`${gateway.baseURL}/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: typeof body === "string" ? body : JSON.stringify({ model: "policy", ...body }),
    })
    return { status: response.status, told: await response.json() }
  }
}

const many = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index))
const message = (content: string) => ({ role: "user", content })
const call = (id: string) => ({ id, type: "function", function: { name: "f", arguments: "{}" } })
const tool = (name: string) => ({ type: "function", function: { name } })

/** Contents that took the tokenizer seconds, each nearly as long as a body may be. */
const contents: Readonly<Record<string, string>> = {
  letters: "a".repeat(1_000_000),
  blanks: `${" ".repeat(1_000_000)}x`,
  marks: `a${"\u0301\u0323".repeat(240_000)}`,
  "control tokens": "<|im_start|>".repeat(80_000),
  "beginnings of control tokens": "<|im_".repeat(200_000),
  "private-use characters": "\ue100\ue101".repeat(160_000),
}

it.each(Object.keys(contents))("a message of a megabyte is rejected while others are answered: %s", async (kind) => {
  const post = await opened()
  await post("chat/completions", { messages: [message("Hi")] })
  let refused = false
  const large = post("chat/completions", { messages: [message(contents[kind]!)] }).finally(() => (refused = true))
  let others = 0
  while (!refused) {
    expect(await post("chat/completions", { messages: [message("Hi")] })).toMatchObject({ status: 200 })
    others++
  }
  expect(await large).toMatchObject({ status: 400, told: { error: { code: "context_length_exceeded" } } })
  expect(others).toBeGreaterThan(2)
})

it("begins the completions of a request in several turns of the event loop", async () => {
  const { post, policy } = await speaking(["yes"], { temperature: { value: 1, fixed: false } })
  const sample = policy.sample.bind(policy)
  let turn = 0
  const turns: number[] = []
  policy.sample = async (request) => {
    turns.push(turn)
    for (const until = performance.now() + 1; performance.now() < until; );
    return await sample(request)
  }
  const count = () => {
    turn++
    if (turns.length < 16) setImmediate(count)
  }
  count()
  const response = await post("chat/completions", { messages: [message("Hi")], n: 16 })
  expect(response.status).toBe(200)
  expect(new Set(turns).size).toBe(16)
})

it("what a request may have of each thing is said where it has more", async () => {
  const post = await opened()
  const cases: readonly (readonly [path: string, body: object | string, status: number, said: RegExp])[] = [
    ["chat/completions", { messages: [message("a".repeat(1_100_000))] }, 413, /the maximum is 1056768 bytes/],
    ["chat/completions", { messages: many(4097, () => message("a")) }, 400, /has 4097 messages; send at most 4096/],
    ["responses", { input: many(16_385, () => message("a")) }, 400, /has 16385 items; send at most 16384/],
    [
      "chat/completions",
      { messages: [message("a")], tools: many(1025, (index) => tool(`f${index}`)) },
      400,
      /has 1025 tools; send at most 1024/,
    ],
    ["chat/completions", { messages: [message("a")], metadata: many(300_000, () => []) }, 400, /objects and lists/],
    [
      "chat/completions",
      { messages: [message("a")], metadata: JSON.parse("[".repeat(272) + "]".repeat(272)) },
      400,
      /is nested more than 272 levels deep/,
    ],
    [
      "chat/completions",
      { messages: [message("a")], chat_template_kwargs: Object.fromEntries(many(257, (index) => [`v${index}`, 1])) },
      400,
      /has 257 variables; send at most 256/,
    ],
  ]
  for (const [path, body, status, said] of cases)
    expect(await post(path, body)).toMatchObject({ status, told: { error: { message: expect.stringMatching(said) } } })
})

it("lists that were compared pair by pair are read at once", async () => {
  const post = await opened(2 ** 20)
  const calls = many(60_000, (index) => call(`c${index}`))
  const zeros = `{"a": 1${"0".repeat(2_000_000)}1}`
  const properties = Object.fromEntries(many(20_000, (index) => [`property${index}`, { type: "string" }]))
  const parameters = { type: "object", properties, required: Object.keys(properties) }
  const bodies = [
    { messages: [message("a"), { role: "assistant", tool_calls: [...calls, calls[0]] }] },
    {
      messages: [
        message("a"),
        { role: "assistant", tool_calls: [{ ...call("c"), function: { name: "f", arguments: zeros } }] },
      ],
    },
    { messages: [message("a")], tools: [{ type: "function", function: { name: "f", parameters } }] },
  ]
  for (const body of bodies) {
    const before = process.cpuUsage()
    expect((await post("chat/completions", body)).status).toBeLessThan(504)
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1e6).toBeLessThan(10) // seconds; the square of their number took minutes
  }
})
