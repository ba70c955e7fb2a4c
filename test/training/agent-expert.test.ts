import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Agent, AgentExpert } from "../../src/agents/agent.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { rolloutDefaults } from "../../src/rollout/options.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { expertRows } from "../../src/sft/expert-sequences.ts"
import { initializeModel } from "../../src/sft/initialize.ts"
import { sft } from "../../src/sft/sft.ts"
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { evaluate } from "../../src/training/evaluate.ts"
import { playerOf } from "../../src/training/player.ts"
import type { StageProgress } from "../../src/training/progress.ts"
import { Random } from "../../src/util/random.ts"
import { ask, user } from "../endpoint/ask.ts"

/** Says a word back, once asked for it and once more. */
const echo = {
  name: "echo",
  *tasks(_split: "train" | "test", random: Random) {
    for (;;) yield ["red", "green", "blue"][random.below(3)]!
  },
}

type Message = { role: string; content: string }

const agent: Agent<string> = async (word, { openai, model }) => {
  const messages: Message[] = []
  for (const text of [`Say ${word}.`, "Again!"]) {
    messages.push({ role: "user", content: text })
    const response = await openai.fetch(`${openai.baseURL}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${openai.apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages }),
    })
    const body = (await response.json()) as { choices: { message: Message }[]; error?: { message: string } }
    if (!response.ok) throw new Error(body.error!.message)
    messages.push(body.choices[0]!.message)
  }
  const success = messages.filter(({ role }) => role === "assistant").every(({ content }) => content === word)
  return { reward: success ? 1 : 0, success }
}

const expert: AgentExpert<string> = (word) => word

let folder: string
let directory: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-agent-expert-"))
  directory = join(folder, "model")
  const options = { seed: 1, hiddenSize: 32, layers: 1, heads: 2, vocabularySize: 300 }
  await initializeModel({ directory, environment: echo, agent, expert, options })
})
afterAll(async () => await rm(folder, { recursive: true }))

describe("an expert that answers the calls of an agent", () => {
  it("contributes its texts and those of the agent to the tokenizer", async () => {
    await using tokenizer = await Tokenizer.open(directory)
    for (const text of ["user", "assistant", "Say", "red", "green", "Again"])
      expect(tokenizer.encode(text).length).toBe(1)
  })

  it("gives the same rows as training would record, including prompts", async () => {
    await using tokenizer = await Tokenizer.open(directory)
    await using policy = await NativePolicy.open(directory, { threads: 1 })
    const random = new Random(3)
    const rows = await expertRows({ policy, tokenizer, environment: echo, agent, expert }, 4, random)
    const words = [...Array(4)].map(
      (
        (tasks) => () =>
          tasks.next().value!
      )(echo.tasks("train", random.derive("tasks"))),
    )
    expect(rows.map(({ tokens }) => tokenizer.decode(tokens))).toEqual(
      words.map(
        (word) =>
          `<|im_start|>user\nSay ${word}.<|im_end|>\n<|im_start|>assistant\n${word}<|im_end|>\n<|im_start|>user\nAgain!<|im_end|>\n<|im_start|>assistant\n${word}<|im_end|>`,
      ),
    )
    const said = rows.map(({ tokens, segments }) =>
      segments.map(({ start, length }) => tokenizer.decode(tokens.subarray(start, start + length))),
    )
    expect(said).toEqual(words.map((word) => [`${word}<|im_end|>`, `${word}<|im_end|>`]))

    await using player = playerOf({ agent, environment: echo })
    const { groups } = await rollout({
      ...{
        ...rolloutDefaults,
        policy,
        tokenizer,
        agentLoop: player.agentLoop,
        maxPositions: policy.maxPositions,
        maxCompletionTokens: 4,
      },
      ...{ tasks: words, groupSize: 1, random: new Random(4) },
    })
    expect(groups.map(({ episodes }) => episodes[0]!.steps[0]!.prompt)).toEqual(
      rows.map(({ tokens, segments }) => tokens.slice(0, segments[0]!.start)),
    )
  })

  it("is cloned: each completion counts as a step, the schedule ends with the last, and the agent runs unchanged", async () => {
    await using tokenizer = await Tokenizer.open(directory)
    await using policy = await NativePolicy.open(directory, { threads: 2 })
    const setup = { policy, tokenizer, environment: echo, agent }
    const rollout = { maxCompletionTokens: 8 }
    const before = await evaluate({ ...setup, tasks: 20, rollout })
    const told: number[] = []
    const onProgress = ({ stage, done, total }: StageProgress) => stage === "sft" && told.push(done / total)
    const optimizer = { learningRate: 5e-3 }
    const reports = await sft({
      ...setup,
      expert,
      tasks: 30,
      epochs: 12,
      completionsPerUpdate: 7,
      optimizer,
      onProgress,
    })
    expect(reports.at(-1)).toMatchObject({ epoch: 12, completions: 60 })
    expect([told.length, told.at(-1)]).toEqual([policy.optimizerSteps, 1])
    expect(policy.optimizerSteps).toBe(12 * Math.ceil(60 / 7))
    const { success } = await evaluate({ ...setup, tasks: 20, rollout })
    expect(before.success).toBeLessThan(0.5)
    expect(success).toBe(1)
  })

  it("requires an agent, is required for one, and if it throws its episodes fail", async () => {
    await using tokenizer = await Tokenizer.open(directory)
    await using policy = await NativePolicy.open(directory, { threads: 1 })
    const setup = { policy, tokenizer, environment: echo, agent, tasks: 4, epochs: 1 }
    await expect(sft({ ...setup, expert: undefined })).rejects.toThrow("expert is missing")
    await expect(sft({ ...setup, agent: undefined, expert })).rejects.toThrow("so give agent too")
    const helpless: AgentExpert<string> = () => {
      throw new Error("no idea")
    }
    const onWarning = () => {}
    await expect(sft({ ...setup, expert: helpless, onWarning })).rejects.toThrow("4 of 4 episodes of the expert failed")
    expect(policy.optimizerSteps).toBe(0)
  })

  it("reports a completion that its call does not allow, even if the agent handles the error", async () => {
    await using tokenizer = await Tokenizer.open(directory)
    await using policy = await NativePolicy.open(directory, { threads: 1 })
    const schema = { type: "object", properties: { word: { enum: ["red", "green", "blue"] } }, required: ["word"], additionalProperties: false } // biome-ignore format: one line
    const strict: Agent<string> = async (word, { openai, model }) => {
      const format = { type: "json_schema", json_schema: { name: "word", schema } }
      for (let tries = 0; tries < 2; tries++) {
        const response = await openai.fetch(`${openai.baseURL}/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${openai.apiKey}`, "content-type": "application/json" },
          body: JSON.stringify({
            model,
            messages: [{ role: "user", content: `Say ${word}.` }],
            response_format: format,
          }),
        })
        if (response.ok) break
      }
      return { reward: 1 }
    }
    const setup = { policy, tokenizer, environment: echo, agent: strict }
    const json: AgentExpert<string> = (word) => JSON.stringify({ word })
    expect((await expertRows({ ...setup, expert: json }, 2, new Random(3))).length).toBe(2)
    const said: string[] = []
    let calls = 0
    const once: AgentExpert<string> = (word) => (calls++ === 0 ? `{"word": "${word}` : JSON.stringify({ word }))
    const onWarning = (message: string) => said.push(message)
    expect((await expertRows({ ...setup, expert: once, onWarning }, 2, new Random(3))).length).toBe(1)
    expect(said.join()).toMatch(/The expert's completion "\{"word": "\w+" violates the tools or the format of the call/)
  })

  it("can return messages, and call tools that the agent offers", async () => {
    await using tokenizer = await Tokenizer.open(directory)
    await using policy = await NativePolicy.open(directory, { threads: 1 })
    const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }]
    const calling: Agent<string> = async (word, context) => {
      const messages = [user(word)]
      for (let turn = 0; turn < 2; turn++) {
        const message = await ask(context, messages, { tools })
        const [call] = (message.tool_calls ?? []) as { id: string }[]
        messages.push(message, ...(call ? [{ role: "tool", tool_call_id: call.id, content: "it is" }] : []))
      }
      return { reward: 1 }
    }
    const setup = { policy, tokenizer, environment: echo, agent: calling }
    const messages: AgentExpert<string> = async (word, heard) =>
      heard.at(-1)!.role === "tool"
        ? { content: word }
        : { tool_calls: [{ function: { name: "look", arguments: {} } }] }
    const strings: AgentExpert<string> = (word, heard) =>
      heard.at(-1)!.role === "tool" ? word : '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
    const rows = await expertRows({ ...setup, expert: messages }, 3, new Random(3))
    expect(rows.map(({ segments }) => segments.length)).toEqual([2, 2, 2])
    expect(rows).toEqual(await expertRows({ ...setup, expert: strings }, 3, new Random(3)))
    const unknown: AgentExpert<string> = () => ({ tool_calls: [{ function: { name: "jump", arguments: {} } }] })
    await expect(expertRows({ ...setup, expert: unknown, onWarning: () => {} }, 3, new Random(3))).rejects.toThrow(
      /3 of 3 episodes of the expert failed.*calls the tool "jump".*offers look/,
    )
  })

  it("is rejected if no completion can be parsed, and warns if some cannot", async () => {
    await using tokenizer = await Tokenizer.open(directory)
    await using policy = await NativePolicy.open(directory, { threads: 1 })
    const tools = [{ type: "function", function: { name: "look" } }]
    const one: Agent<string> = async (word, context) => {
      await ask(context, [user(word)], { tools })
      return { reward: 1 }
    }
    const setup = { policy, tokenizer, environment: echo, agent: one }
    const broken = '<tool_call>\n{"name": "look"'
    const said: string[] = []
    const onWarning = (message: string) => said.push(message)
    await expect(expertRows({ ...setup, expert: () => broken, onWarning }, 4, new Random(3))).rejects.toMatchObject({
      code: "BAD_ENVIRONMENT",
      message: expect.stringMatching(/None of the expert's 4 completions is valid, the first of them .*tool_call/),
    })
    expect(said).toEqual([])
    let calls = 0
    const mixed: AgentExpert<string> = (word) => (calls++ % 2 === 0 ? broken : word)
    expect(await expertRows({ ...setup, expert: mixed, onWarning }, 4, new Random(3))).toHaveLength(4)
    expect(said).toEqual([expect.stringContaining("2 of the expert's 4 completions are invalid")])
    await expertRows({ ...setup, expert: (word) => word, onWarning }, 4, new Random(3))
    expect(said).toHaveLength(1)
  })
})

it.each([
  ["none", () => false, /None of the expert's \d+ completions is valid, the first of them .*up/],
  ["some", (index: number) => index > 0, undefined],
  ["all", () => true, undefined],
])("an environment's expert of whose replies %s are valid", async (which, validAt, refusal) => {
  await using tokenizer = await Tokenizer.open(directory)
  let parsed = 0
  const walk = {
    name: "walk",
    *tasks() {
      for (;;) yield 0
    },
    start: async () => ({
      first: { text: "here", anchor: "here" },
      step: async () => ({
        observation: { text: "there", anchor: "there" },
        reward: 1,
        terminated: true,
        truncated: false,
      }),
      async [Symbol.asyncDispose]() {},
    }),
    prompt: () => [{ role: "user" as const, content: "Go." }],
    parse: (completion: string) => ({ action: completion, valid: validAt(parsed++) }),
    expert: () => ({ complete: () => "up" }),
  }
  const said: string[] = []
  const policy = { vocabularySize: tokenizer.vocabularySize, maxPositions: 1000 }
  const onWarning = (message: string) => said.push(message)
  const rows = expertRows({ policy, tokenizer, environment: walk, onWarning }, 3, new Random(3))
  if (refusal) await expect(rows).rejects.toThrow(refusal)
  else expect(await rows).toHaveLength(3)
  expect(said).toEqual(which === "some" ? [expect.stringContaining("1 of the expert's 3 completions are invalid")] : [])
})
