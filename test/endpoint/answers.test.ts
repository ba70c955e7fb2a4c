import { expect, it } from "vitest"
import type { SampleRequest } from "../../src/engine/engine.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { type Answer, events, joined, speaking } from "./speaking.ts"

const user = (content: string) => ({ role: "user", content })
const messages = [user("Hi")]
const json = async (response: Promise<Response>): Promise<Answer> => await (await response).json()

it.each([false, true])("several completions to one call (streamed: %s)", async (stream) => {
  const { post, policy } = await speaking(["one", "two", "three"])
  const body = { messages, n: 3, stream, ...(stream && { stream_options: { include_usage: true } }) }
  const response = await post("chat/completions", body)
  const told: Answer = stream ? await events(response) : await response.json()
  const texts = stream
    ? joined(told).map(({ content }) => content)
    : told.choices.map((one: Answer) => one.message.content)
  expect(texts).toEqual(["one", "two", "three"])
  expect(new Set(policy.requests.map(({ key }) => `${key}`)).size).toBe(3)
  const completion = ["one", "two", "three"].reduce((sum, text) => sum + policy.tokens(text).length, 0)
  const prompt = policy.requests[0]!.prompt.length
  const { usage } = stream ? told.at(-1) : told
  expect(usage).toEqual({
    ...{ prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  })
  if (stream) {
    expect(told.at(-1).choices).toEqual([])
    expect(told.slice(0, -1).every((chunk: Answer) => chunk.usage === null)).toBe(true)
  }
})

it("the same seed draws the same numbers again; without one, each call draws its own", async () => {
  const { post, policy } = await speaking(["one"])
  for (const more of [{ seed: 1 }, {}, { seed: 2 }, { seed: 1 }, {}, { seed: -1 }])
    await post("chat/completions", { messages, ...more })
  const keys = policy.requests.map(({ key }) => `${key}`)
  expect(keys[3]).toBe(keys[0])
  expect(new Set(keys).size).toBe(5)
})

it.each([false, true])("log-probabilities, and those of the likeliest tokens (streamed: %s)", async (stream) => {
  const { post, policy, tokenizer } = await speaking(["one two"])
  const read = async (path: string, body: object) => {
    const response = await post(path, { ...body, stream })
    return (stream ? await events(response) : [await response.json()]) as Answer[]
  }
  const tokens = policy.tokens("one two")
  const expected = tokens.map((token, place) => ({
    token: tokenizer.decode([token]),
    bytes: [...Buffer.from(tokenizer.decode([token]))],
    logprob: Math.fround(-1 - place / 1024),
    top_logprobs: [
      { token: tokenizer.decode([token]), bytes: [...Buffer.from(tokenizer.decode([token]))], logprob: -0.5 },
      { token: tokenizer.decode([1]), bytes: [...Buffer.from(tokenizer.decode([1]))], logprob: -1.5 },
    ],
  }))
  const chat = await read("chat/completions", { messages, logprobs: true, top_logprobs: 2, return_token_ids: true })
  const choice = stream ? joined(chat)[0] : chat[0].choices[0]
  expect(choice.logprobs).toEqual({ content: expected, refusal: null })
  expect(choice.token_ids).toEqual(tokens)
  expect(chat.flatMap(({ prompt_token_ids = [] }) => prompt_token_ids)).toEqual([...policy.requests[0]!.prompt])
  const asked = { input: "Hi", include: ["message.output_text.logprobs"], top_logprobs: 2 }
  const responses = await read("responses", asked)
  const { output } = stream ? responses.at(-1).response : responses[0]
  expect(output[0].content[0].logprobs).toEqual(expected)
  // Nobody is told who has not asked.
  const plain = await read("chat/completions", { messages })
  expect(JSON.stringify(plain)).not.toContain("token_ids")
  expect((stream ? joined(plain)[0] : plain[0].choices[0]).logprobs).toBeNull()
})

it("counts what responses take, streamed and not, and says when a completion was cut", async () => {
  const { post, policy } = await speaking(["one two three four"])
  const whole = await json(post("responses", { input: "Hi", max_output_tokens: 2 }))
  const streamed = (await events(await post("responses", { input: "Hi", max_output_tokens: 2, stream: true }))).at(-1)
  expect(streamed.type).toBe("response.incomplete")
  const prompt = policy.requests[0]!.prompt.length
  for (const { status, incomplete_details, usage } of [whole, streamed.response]) {
    expect([status, incomplete_details]).toEqual(["incomplete", { reason: "max_output_tokens" }])
    expect(usage).toEqual({
      ...{ input_tokens: prompt, output_tokens: 2, total_tokens: prompt + 2 },
      input_tokens_details: { cached_tokens: 0 },
      output_tokens_details: { reasoning_tokens: 0 },
    })
  }
})

it("tells the bytes of tokens that are less than a character", async () => {
  const { post, tokenizer } = await speaking(["\u{1f98a}!"])
  const { choices } = await json(post("chat/completions", { messages, logprobs: true }))
  const told: Answer[] = choices[0].logprobs.content
  expect(told.some(({ token }) => token.includes("\u{fffd}"))).toBe(true)
  expect(Buffer.from(told.slice(0, -1).flatMap(({ bytes }) => bytes)).toString()).toBe("\u{1f98a}!")
  expect(Buffer.from(told.at(-1).bytes).toString()).toBe(tokenizer.decode([tokenizer.eosTokens[0]!]))
})

it.each([false, true])(
  "a completion that is cut behind a whole call says that it is cut (streamed: %s)",
  async (stream) => {
    const one = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    const { post, policy } = await speaking([`${one}\n${one}`])
    const parameters = { type: "object" }
    const most = policy.tokens(`${one}\n${one}`).length - 3
    const tools = [{ type: "function", function: { name: "f", parameters } }]
    const chat = await post("chat/completions", { messages, tools, stream, max_tokens: most })
    const [choice] = stream ? joined(await events(chat)) : ((await chat.json()) as Answer).choices
    expect([choice.finish_reason, (stream ? choice : choice.message).tool_calls.length]).toEqual(["length", 1])
    const flat = [{ type: "function", name: "f", parameters }]
    const told = await post("responses", { input: "Hi", tools: flat, stream, max_output_tokens: most })
    const response = stream ? (await events(told)).at(-1).response : ((await told.json()) as Answer)
    expect([response.status, response.incomplete_details]).toEqual(["incomplete", { reason: "max_output_tokens" }])
    const types = response.output.map(({ type }: Answer) => type)
    expect(types.filter((type: string) => type === "function_call")).toEqual(["function_call"])
  },
)

it("rejects by name what it could not keep to", async () => {
  const { post, policy } = await speaking(["one"])
  const refused: [string, object, string][] = [
    ["chat/completions", { messages, stream_options: { include_usage: true } }, "stream_options"],
    ["chat/completions", { messages, stream: true, stream_options: { more: 1 } }, "stream_options.more"],
    ["chat/completions", { messages, top_logprobs: 2 }, "top_logprobs"],
    ["chat/completions", { messages, n: 0 }, "n"],
    ["chat/completions", { messages, seed: 1.5 }, "seed"],
    ["chat/completions", { messages, reasoning_effort: "low" }, "reasoning_effort"],
    ["responses", { input: "Hi", reasoning: { effort: "low" } }, "reasoning.effort"],
    ["responses", { input: "Hi", stream_options: {} }, "stream_options"],
    ["responses", { input: "Hi", n: 2 }, "n"],
    ["responses", { input: "Hi", seed: 2 }, "seed"],
    ["responses", { input: "Hi", previous_response_id: "x" }, "previous_response_id"],
  ]
  for (const [path, body, param] of refused) {
    const response = await post(path, body)
    expect([response.status, ((await response.json()) as Answer).error.param]).toEqual([400, param])
  }
  expect(policy.requests).toEqual([])
})

it("rejects a grammar that cannot be met, and names its field", async () => {
  const { post, policy } = await speaking(["one"])
  const never = { type: "object", properties: { a: { enum: [1], type: "string" } }, required: ["a"], additionalProperties: false } // biome-ignore format: one line
  const endless = { $defs: { a: { type: "array", items: { $ref: "#/$defs/a" }, minItems: 1 } }, $ref: "#/$defs/a" }
  for (const schema of [
    never,
    endless,
    false,
    { type: "string", minLength: 3, maxLength: 2 },
    { type: "nothing" },
    { not: {} },
  ]) {
    const format = { type: "json_schema", json_schema: { name: "x", schema } }
    const tool = { name: "f", strict: true, parameters: { type: "object", properties: { a: schema }, required: ["a"] } }
    const chat = [
      { messages, response_format: format },
      { messages, tools: [{ type: "function", function: tool }], tool_choice: "required" },
    ]
    const responses = [
      { input: "Hi", text: { format: { type: "json_schema", name: "x", schema } } },
      { input: "Hi", tools: [{ type: "function", ...tool }], tool_choice: "required" },
    ]
    const bodies = [...chat.map((body) => ["chat/completions", body]), ...responses.map((body) => ["responses", body])]
    const told = bodies.map(async ([path, body]) => {
      const response = await post(path as string, body as object)
      return [response.status, ((await response.json()) as Answer).error.param]
    })
    expect(await Promise.all(told)).toEqual([
      [400, "response_format.json_schema.schema"],
      [400, "tools[0].function.parameters"],
      [400, "text.format.schema"],
      [400, "tools[0].parameters"],
    ])
  }
  // More ways to begin than may be followed.
  const schema = { enum: Array.from({ length: 12_000 }, (_, i) => `${i}`) }
  const wide = await post("chat/completions", {
    messages,
    response_format: { type: "json_schema", json_schema: { name: "x", schema } },
  })
  const { error } = (await wide.json()) as Answer
  expect([wide.status, error.param]).toEqual([400, "response_format.json_schema.schema"])
  expect(error.message).toContain("in too many ways at once")
  expect(policy.requests).toEqual([])
})

it("a grammar that fails in the middle of a completion fails that call alone, by the field, and is made anew for the next", async () => {
  const { post, policy, errors } = await speaking(["1"])
  const said = policy.sample.bind(policy)
  const fails = async (request: SampleRequest) => {
    policy.requests.push(request)
    request.onTokens?.(policy.tokens("1") as unknown as Int32Array)
    throw new GigpoError("CONSTRAINT_FAILED", "The grammar takes too much work.")
  }
  const body = { messages, response_format: { type: "json_schema", json_schema: { name: "x", schema: { const: 1 } } } }
  const error = { message: "The grammar takes too much work.", param: "response_format.json_schema.schema", code: "constraint_failed" } // biome-ignore format: one line
  for (const stream of [false, true]) {
    const ask = async (sample: typeof said) => {
      policy.sample = sample
      const response = await post("chat/completions", { ...body, stream })
      return [response.status, stream ? (await events(response)).at(-1) : await response.json()]
    }
    expect((await ask(said))[0]).toBe(200)
    expect(await ask(fails)).toMatchObject([stream ? 200 : 400, { error }])
    expect((await ask(said))[0]).toBe(200)
  }
  const constraints = policy.requests.map(({ constraint }) => constraint)
  expect(new Set(constraints).size).toBe(3) // the first, and one after each failure
  expect([constraints[0] === constraints[1], constraints[2] === constraints[3]]).toEqual([true, true])
  expect(errors).toEqual([])
})

it("tells what the model's chat template rejects, and not where it lies", async () => {
  const strict = (template: string) =>
    `{% if messages[0]['role'] != 'user' %}{{ raise_exception('The user speaks first') }}{% endif %}${template}`
  const { post, errors } = await speaking(["one"], { template: strict })
  const response = await post("chat/completions", { messages: [{ role: "system", content: "Be." }, ...messages] })
  const { error } = (await response.json()) as Answer
  expect([response.status, error.param]).toEqual([400, "messages"])
  expect(error.message).toContain("The user speaks first")
  expect(error.message).not.toContain("tokenizer_config")
  expect(errors).toEqual([])
})

it("tells of a fault within a stream as an event that clients know, and in the log alone what it was", async () => {
  for (const path of ["chat/completions", "responses"]) {
    const { post, policy, errors } = await speaking(["one two three"])
    const { sample } = policy
    policy.sample = async (request) => {
      request.onTokens?.(Int32Array.from(policy.tokens("one").slice(0, -1)))
      await sample.call(policy, { ...request, onTokens: undefined })
      throw new Error("a secret of the house")
    }
    const asked = path === "responses" ? { input: "Hi" } : { messages }
    const told = await events(await post(path, { ...asked, stream: true }))
    expect(JSON.stringify(told)).not.toContain("secret of the house")
    expect(JSON.stringify(told.at(-1))).toContain("Internal error of the server")
    expect(errors.map(String)).toEqual(["Error: a secret of the house"])
  }
})
