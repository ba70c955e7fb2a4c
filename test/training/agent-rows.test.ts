import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Agent, agentLoop } from "../../src/agents/agent.ts"
import { type Gateway, openGateway } from "../../src/agents/gateway.ts"
import type { Sequence } from "../../src/engine/sequence.ts"
import { openSafetensors } from "../../src/model-files/safetensors.ts"
import type { Episode } from "../../src/rollout/episode.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { layOutSequences } from "../../src/training/rows.ts"
import { collectSteps } from "../../src/training/steps.ts"
import { Random } from "../../src/util/random.ts"
import { ask, askAll, type Message, user } from "../endpoint/ask.ts"
import { byRow } from "../engine/by-row.ts"
import { gradients, relativeError, surrogate } from "../engine/fixtures.ts"
import { type Model, openDoors, TinyModel } from "./tiny.ts"

// What a real model says to agents is recorded so that training computes the same of it.

const tiny = new TinyModel(openDoors(), { maxPositions: 2048 })
let gateway: Gateway
beforeAll(async () => {
  gateway = await openGateway()
})
afterAll(async () => await gateway[Symbol.asyncDispose]())

const tool = (name: string, properties: object) => ({
  type: "function",
  function: { name, strict: true, parameters: { type: "object", properties, required: Object.keys(properties) } },
})
const tools = [tool("look", { at: { enum: ["red", "blue"] } }), tool("add", { a: { type: "boolean" } })]

/** What the tools say to all calls of a message. */
const results = (message: Message): Message[] =>
  ((message.tool_calls ?? []) as { id: string; function: { arguments: string } }[]).map(({ id, function: called }) => ({
    role: "tool",
    tool_call_id: id,
    content: `done ${called.arguments}`,
  }))

const schema = {
  type: "json_schema",
  json_schema: { name: "a", schema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] } },
}

/** An agent that does all that agents do. */
const versatile: Agent<string> = async (task, context) => {
  const messages = [{ role: "system", content: "You look." }, user(task)]
  for (let turn = 0; turn < 2; turn++) {
    const message = await ask(context, messages, { tools, tool_choice: "required", max_tokens: 400 })
    messages.push(message as (typeof messages)[0], ...(results(message) as typeof messages))
  }
  // Paths that part, side by side; more are side conversations.
  const paths = ["left", "right", "back"].map((path) =>
    ask(context, [...messages, user(path)], { tools, max_tokens: 9 }),
  )
  const side = ["title", "summary"].map((kind) => ask(context, [user(`${kind} of ${task}`)], { max_tokens: 12 }))
  const choices = askAll(context, [user("choose")], { n: 3, max_tokens: 5 })
  await Promise.all([...paths, ...side, choices])
  await ask(context, [user("truth")], { response_format: schema, max_tokens: 12 })
  await ask(context, [user("until")], { stop: ["e", "\n"], max_tokens: 12 })
  const talk = [user("hi")]
  for (let turn = 0; turn < 3; turn++)
    talk.push(await ask(context, talk, { max_tokens: 4 + turn }), user(`more ${turn}`))
  context.reward(1)
  return { reward: Number(String(talk[1]!.content).length % 2), success: true }
}

async function play(model: Model, agent: Agent<string>, changes: object = {}): Promise<Episode[]> {
  const { groups } = await rollout({
    ...{ policy: model.policy, tokenizer: model.tokenizer, tasks: ["red", "green"], groupSize: 2, concurrency: 4 },
    ...{ temperature: 1, maxCompletionTokens: 400, maxSteps: 50, maxPositions: 2048, environmentTimeout: 10 },
    random: new Random(3),
    agentLoop: agentLoop(agent, gateway),
    ...changes,
  })
  return groups.flatMap(({ episodes }) => episodes)
}

const rowsOf = (episodes: readonly Episode[]): Sequence[] => layOutSequences(collectSteps([episodes]))

describe("completions of an agent's model", () => {
  it.each([1, 0.7])("are scored with their sampled log-probabilities, at temperature %d", async (temperature) => {
    const model = await tiny.open()
    const episodes = await play(model, versatile, { temperature })
    expect(episodes.map(({ outcome, error }) => [outcome, error])).toEqual(Array(4).fill(["terminated", undefined]))
    const rows = rowsOf(episodes)
    const scored = byRow(rows, await model.policy.logProbs(rows, { temperature }))
    const constrained = rows.flatMap(({ segments }) => segments).filter(({ constraint }) => constraint !== undefined)
    expect(constrained.length).toBeGreaterThanOrEqual(4 * 3)
    for (const [index, { segments }] of rows.entries()) {
      const sampled = segments.flatMap(({ logProbs }) => [...logProbs!])
      const again = [...scored[index]!.logProbs]
      expect(again.length).toBe(sampled.length)
      for (const [at, value] of again.entries()) expect(Math.abs(value - sampled[at]!)).toBeLessThan(1e-4)
    }
  })

  it("form one row per growing conversation; diverging or separate ones form other rows", async () => {
    const model = await tiny.open()
    const [episode] = (await play(model, versatile)) as [Episode]
    const rows = rowsOf([episode])
    // Two turns with one of the three paths; the two others; title, summary; three choices; truth; until; a talk of three turns.
    expect(rows.map(({ segments }) => segments.length).sort((a, b) => b - a)).toEqual([3, 3, ...Array(9).fill(1)])
    expect(rows[0]!.segments.length).toBe(3)
    expect(episode.steps.map(({ retokenized }) => retokenized).filter((one) => one !== undefined)).toEqual(
      Array(6).fill(false),
    )
    const calls = episode.steps.slice(0, 2).map(({ action }) => JSON.parse(action) as [string, string][])
    expect(calls.flat().every(([name, given]) => ["look", "add"].includes(name) && JSON.parse(given))).toBe(true)
  })

  it("have the same gradient in one row of several turns and in rows with repeated prompts, up to rounding", async () => {
    const model = await tiny.open()
    const random = new Random(5)
    const whole = rowsOf(await play(model, versatile)).map((row) => ({
      ...row,
      segments: row.segments.map((segment) => ({ ...segment, advantage: random.uniform() - 0.5 })),
    }))
    const apart = whole.flatMap(({ tokens, segments }) =>
      segments.map((segment) => ({ tokens: tokens.slice(0, segment.start + segment.length), segments: [segment] })),
    )
    expect(apart.length).toBeGreaterThan(whole.length + 10)
    const { names, close } = await openSafetensors(tiny.directory)
    await close()
    const repeating = await tiny.open(tiny.directory, { sharePrefixes: false })
    for (const loss of [
      surrogate({ klWeight: 0 }),
      surrogate({ klWeight: 0, entropyWeight: 0.02, skipZeroAdvantage: true }),
    ]) {
      const teach = async ({ policy }: Model, rows: readonly Sequence[]) => {
        await policy.clearGradients()
        const report = await policy.forwardBackward(rows, loss)
        return { ...report, gradients: await gradients(policy, [...names]) }
      }
      const [one, several] = [await teach(model, whole), await teach(repeating, apart)]
      expect(one.loss).toBeCloseTo(several.loss, 5)
      expect(one.computedTokens! * 1.5).toBeLessThan(several.computedTokens!)
      for (const [name, gradient] of several.gradients)
        expect(relativeError(one.gradients.get(name)!, gradient), name).toBeLessThan(1e-5)
    }
  })
})
