import { afterEach, expect, it, vi } from "vitest"
import { type Agent, type AgentContext, agentLoop } from "../../src/agents/agent.ts"
import { type Gateway, openGateway } from "../../src/agents/gateway.ts"
import { tokenText } from "../../src/chat/dialect.ts"
import { plainGenerator } from "../../src/chat/plain-generator.ts"
import { toBatch } from "../../src/credit/batch.ts"
import type { Credit } from "../../src/credit/estimator.ts"
import { grpo } from "../../src/credit/grpo.ts"
import type { Completion, SampleRequest, Sampler } from "../../src/engine/engine.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { rolloutMetrics } from "../../src/training/metrics.ts"
import { layOutSequences } from "../../src/training/rows.ts"
import { collectSteps } from "../../src/training/steps.ts"
import { atOnce } from "../../src/util/pace.ts"
import { Random } from "../../src/util/random.ts"
import { ask, user } from "../endpoint/ask.ts"
import { Scripted } from "../endpoint/scripted.ts"
import { open, tokenizerFolder } from "../tokenizer/scratch.ts"

let gateway: Gateway | undefined
afterEach(async () => {
  await gateway?.[Symbol.asyncDispose]()
  gateway = undefined
})

/** Plays one episode of each task, with a model that says these replies in turn. */
async function play<Task>(
  agent: Agent<Task>,
  tasks: readonly Task[],
  completions: readonly string[],
  options: {
    maxSteps?: number
    maxPositions?: number
    maxCompletionTokens?: number
    normalize?: (text: string) => string
  } = {},
) {
  const tokenizer = await open(await tokenizerFolder())
  const policy = new Scripted(tokenizer, completions)
  gateway = await openGateway()
  const { maxSteps = 10, maxPositions = 1024, maxCompletionTokens = 64, normalize } = options
  const { groups } = await rollout({
    ...{
      policy,
      tokenizer,
      tasks,
      groupSize: 1,
      concurrency: 1,
      temperature: 1,
      maxCompletionTokens,
      maxSteps,
      maxPositions,
      environmentTimeout: 10,
    },
    random: new Random(1),
    agentLoop: agentLoop(agent, gateway, { normalize, onWarning: () => {} }),
  })
  return { policy, tokenizer, gateway, episodes: groups.map(({ episodes }) => episodes[0]!) }
}

it("records completions: one row per growing conversation, anchors, rewards, metrics", async () => {
  const agent: Agent<string> = async (task, context) => {
    const messages = [user(task)]
    messages.push(await ask(context, messages))
    context.reward(0.5)
    messages.push(user("and then?"))
    context.step({ anchor: "second" })
    messages.push(await ask(context, messages, {}, fetch)) // over the socket
    return { reward: 1, success: true, metrics: { turns: 2 } }
  }
  const { episodes, tokenizer } = await play(agent, ["begin"], ["one", "two"])
  const [episode] = episodes
  expect(episode).toMatchObject({ outcome: "terminated", return: 1.5, metrics: { turns: 2, success: 1 } })
  expect(
    episode!.steps.map(({ text, observation, reward }) => [text, observation.anchor, observation.text, reward]),
  ).toEqual([
    ["one", "begin", "begin", 0.5],
    ["two", "second", "and then?", 1],
  ])
  for (const { completion, entropies } of episode!.steps)
    expect(entropies).toEqual(Float32Array.from(completion, (_, place) => 2 + place / 1024))
  const rows = layOutSequences(collectSteps([[episode!]]))
  expect(rows.map(({ segments }) => segments.length)).toEqual([2])
  expect(tokenizer.decode(rows[0]!.tokens)).toBe(
    "<|im_start|>user\nbegin<|im_end|>\n<|im_start|>assistant\none<|im_end|>\n<|im_start|>user\nand then?<|im_end|>\n<|im_start|>assistant\ntwo<|im_end|>",
  )
})

it("keeps side conversations, several completions to one call, and calls side by side in rows of their own", async () => {
  const agent: Agent<string> = async (task, context) => {
    const first = await ask(context, [user(task)])
    await ask(context, [user(`Summarise ${task}`)])
    await Promise.all([1, 2].map((n) => ask(context, [user(task), first, user(`path ${n}`)])))
    await ask(context, [user("choices")], { n: 2 })
    return { reward: 1 }
  }
  const { episodes } = await play(agent, ["begin"], ["a", "b", "c", "d", "e", "f"])
  expect(episodes[0]!.steps.map(({ conversation }) => conversation)).toEqual([0, 1, 0, 2, 3, 4])
  const rows = layOutSequences(collectSteps([[episodes[0]!]]))
  expect(rows.map(({ segments }) => segments.length)).toEqual([2, 1, 1, 1, 1])
})

it("limits concurrent completions of an episode, for any number of requests", async () => {
  let [running, most] = [0, 0]
  let release = () => {}
  const full = new Promise<void>((resolve) => {
    release = resolve
  })
  const { sample } = Scripted.prototype
  vi.spyOn(Scripted.prototype, "sample").mockImplementation(async function (this: Scripted, request) {
    most = Math.max(most, ++running)
    if (running === 64) setTimeout(release, 100) // in which no other is begun
    await full
    return await sample.call(this, request).finally(() => running--)
  })
  const agent: Agent<string> = async (task, context) => {
    await Promise.all(Array.from({ length: 100 }, (_, n) => ask(context, [user(`${task} ${n}`)])))
    return { reward: 1 }
  }
  const { episodes, policy } = await play(agent, ["begin"], ["a"], { maxSteps: 100 })
  vi.restoreAllMocks()
  expect([episodes[0]!.steps.length, policy.requests.length, most]).toEqual([100, 100, 64])
  // The first few are of the client that all episodes are; what it asks for beyond these is of a client of its own. How many run at once after
  // the first 64 have ended depends on the processor.
  const clients = policy.requests.map(({ client }) => client)
  expect(clients.slice(0, 2)).toEqual(Array.from({ length: 2 }, () => undefined))
  expect(new Set(clients.slice(2, 64)).size).toBe(1)
  expect(clients[2]).toBeGreaterThan(0)
})

it("counts only calls that continue a conversation in text but not in tokens", async () => {
  const agent: Agent<string> = async (task, context) => {
    const shown = [user("an example"), { role: "assistant", content: "as it should be" }, user(task)]
    const first = await ask(context, shown) // does not continue a recorded conversation
    const next = [...shown, first, user("and?")]
    const second = await ask(context, next)
    const cut = { ...second, content: `${String(second.content).slice(0, 1)}!` }
    await ask(context, [...next, cut, user("cut")])
    await ask(context, [...shown.slice(0, 2), user("anew"), second, user("elsewhere")])
    await ask(context, [{ role: "system", content: "New rules." }, ...next])
    return { reward: 1 }
  }
  const { episodes } = await play(agent, ["begin"], ["one", "two", "three", "four", "five"])
  expect(episodes[0]!.steps.map(({ text, retokenized, conversation }) => [text, retokenized, conversation])).toEqual([
    ["one", undefined, 0],
    ["two", false, 0],
    ["three", true, 1],
    ["four", undefined, 2],
    ["five", undefined, 3],
  ])
  const pieces = rolloutMetrics(
    [{ task: "begin", index: 0, episodes }],
    grpo({}).estimate(toBatch(collectSteps([episodes])), {
      progress: { iteration: 0, iterations: 1 },
      random: new Random(1),
    }) as Credit,
  )
  expect(atOnce(pieces)["sequence/retokenized"]).toBe(1 / 2)
})

it("supports tools that are available only in later calls", async () => {
  const tools = [{ type: "function", function: { name: "lookup", parameters: { type: "object", properties: {} } } }]
  const agent: Agent<string> = async (task, context) => {
    const first = await ask(context, [user(task)], { tools, tool_choice: "none" })
    await ask(context, [user(task), first, user("now look")], { tools, tool_choice: "auto" })
    return { reward: 1 }
  }
  const { episodes, tokenizer } = await play(agent, ["begin"], ["one", "two"])
  const [before, after] = episodes[0]!.steps
  expect(tokenizer.decode(before!.prompt)).not.toContain("lookup")
  expect(tokenizer.decode(after!.prompt)).toContain("lookup")
  expect([after!.conversation, after!.retokenized]).toEqual([1, true])
})

it("records concurrent calls in a fixed order, whichever is answered first", async () => {
  const orders = [[0, 1, 2, 3], [3, 1, 0, 2]] // biome-ignore format: one line
  const played = []
  for (const order of orders) {
    const agent: Agent<string> = async (task, context) => {
      const first = await ask(context, [user(task)])
      await Promise.all(order.map((path) => ask(context, [user(task), first, user(`path ${path}`)])))
      await ask(context, [user("the end")])
      context.reward(2)
      return { reward: 1 }
    }
    const { episodes } = await play(agent, ["begin"], ["same"])
    played.push(
      episodes[0]!.steps.map(({ observation, conversation, reward }) => [observation.text, conversation, reward]),
    )
    await gateway?.[Symbol.asyncDispose]()
  }
  expect(played[1]).toEqual(played[0])
  expect(played[0]!.map(([, conversation]) => conversation)).toEqual([0, 0, 1, 2, 3, 4])
  expect(played[0]!.at(-1)).toEqual(["the end", 4, 3])
})

it("records concurrent branches in a fixed order, followed by later calls", async () => {
  const played = []
  for (const slow of [0, 1]) {
    let behind = () => {}
    const quicker = new Promise<void>((resolve) => {
      behind = resolve
    })
    const agent: Agent<string> = async (task, context) => {
      const plan = [user(task)]
      plan.push(await ask(context, plan))
      const branch = async (number: number) => {
        const messages = [user(`first of ${number}`)]
        messages.push(await ask(context, messages), user(`second of ${number}`))
        if (number === slow) await quicker // its tool takes until the other branch is done
        await ask(context, messages)
        behind()
      }
      await Promise.all([0, 1].map(branch))
      await ask(context, [user("a sub-agent of its own")])
      await ask(context, [...plan, user("the end")])
      context.reward(2)
      return { reward: 1 }
    }
    const { episodes } = await play(agent, ["begin"], ["same"])
    played.push(episodes[0]!.steps.map(({ observation, reward }) => [observation.text, reward]))
    await gateway?.[Symbol.asyncDispose]()
  }
  expect(played[1]).toEqual(played[0])
  const texts = played[0]!.map(([text]) => String(text))
  expect(texts[0]).toBe("begin")
  expect(texts.slice(1, 3).sort()).toEqual(["first of 0", "first of 1"])
  expect(texts.slice(3, 5).sort()).toEqual(["second of 0", "second of 1"])
  expect(texts.slice(5)).toEqual(["a sub-agent of its own", "the end"])
  expect(played[0]!.at(-1)![1]).toBe(3)
})

it.each<[string, unknown, RegExp]>([
  ["nothing", undefined, /give a number, \{"reward": …\} or null, not undefined/],
  ["no reward", { success: true }, /give a number, \{"reward": …\} or null, not \{ success: true \}/],
  ["a reward that is no number", { reward: "much" }, /give a number, \{"reward": …\} or null/],
  ["a reward of NaN", { reward: Number.NaN }, /rewards must be finite/],
  [
    "unused options",
    { reward: 1, succes: true },
    /The agent reported an invalid reward: "succes" is not known \(did you mean "success"\?\)/,
  ],
])("an agent that ends with %s costs its episode", async (_, end, message) => {
  const agent: Agent<string> = async (task, context) => {
    await ask(context, [user(task)])
    return end as never
  }
  const { episodes } = await play(agent, ["x"], ["a"])
  expect(episodes[0]).toMatchObject({ outcome: "failed", steps: { length: 1 } })
  expect(episodes[0]!.error!.message).toMatch(message)
})

it("normalizes what it compares by default", async () => {
  const agent: Agent<string> = async (task, context) => {
    const { tool_calls: _, ...said } = await ask(context, [user(task)])
    const call = { id: "x", type: "function", function: { name: "f", arguments: "{}" } }
    await ask(context, [
      user(task),
      { ...said, tool_calls: [call] },
      { role: "tool", tool_call_id: "x", content: "at 12:30" },
    ])
    return { reward: 1 }
  }
  const { episodes } = await play(agent, ["at 9:15"], ["a"], { normalize: (text) => text.replace(/\d+:\d+/, "#") })
  expect(episodes[0]!.steps.map(({ observation }) => observation.anchor)).toEqual(["at #", "at #"])
})

it("drops episodes that cannot be scored, fails those that throw, and ends those that are too long", async () => {
  const agent: Agent<string> = async (task, context) => {
    if (task === "null") {
      await ask(context, [user(task)])
      return null
    }
    if (task === "throw") throw new Error("no tool today")
    for (const messages = [user(task)]; ; messages.push(user(task.repeat(10))))
      messages.push(await ask(context, messages))
  }
  const { episodes } = await play(agent, ["null", "throw", "steps"], ["a"], { maxSteps: 3, maxPositions: 4000 })
  expect(episodes.map(({ outcome, steps }) => [outcome, steps.length])).toEqual([["excluded", 1], ["failed", 0], ["truncated", 3]]) // biome-ignore format: one line
  expect(episodes[1]!.error?.message).toContain("no tool today")
  await gateway?.[Symbol.asyncDispose]()
  const long = await play(agent, ["overflow"], ["a"], { maxPositions: 150 })
  expect(long.episodes[0]).toMatchObject({ outcome: "overflow" })
  expect(long.episodes[0]!.steps.length).toBeGreaterThan(0)
})

it("limits completions to the run's maximum if a request exceeds it, without failing the episode", async () => {
  const finished: unknown[] = []
  const agent: Agent<string> = async (task, context) => {
    for (const max_tokens of [500, 2000, 1e6, 3]) {
      await ask(context, [user(task)], { max_tokens })
      finished.push(max_tokens)
    }
    return { reward: 1 }
  }
  const long = "one two three four five six seven eight nine ten ".repeat(20)
  const { episodes } = await play(agent, ["go"], [long], { maxCompletionTokens: 16 })
  expect(episodes[0]).toMatchObject({ outcome: "terminated" })
  expect(episodes[0]!.steps.map(({ completion, finishReason }) => [completion.length, finishReason])).toEqual([
    ...Array(3).fill([16, "length"]),
    [3, "length"],
  ])
  expect(finished).toEqual([500, 2000, 1e6, 3])
})

it("fails an agent that got over a call that did not fit, and then had a fault of its own", async () => {
  const agent: Agent<string> = async (task, context) => {
    await ask(context, [user(task)])
    const long = () => ask(context, [user(task.repeat(500))])
    if (task === "over") await long().catch(() => ask(context, [user("in short")]))
    // A call beside it that fitted gets over nothing.
    if (task === "beside") await Promise.allSettled([long(), ask(context, [user("in short")])])
    throw new Error("a fault")
  }
  const { episodes } = await play(agent, ["over", "beside"], ["a"], { maxPositions: 400 })
  expect(episodes.map(({ outcome, steps }) => [outcome, steps.length])).toEqual([["failed", 2], ["overflow", 2]]) // biome-ignore format: one line
})

it("ends waiting requests of this process when its gateway closes", async () => {
  let asked = () => {}
  const sampling = new Promise<void>((resolve) => {
    asked = resolve
  })
  const tokenizer = await open(await tokenizerFolder())
  const stuck = {
    maxPositions: 1024,
    sample: ({ signal }: SampleRequest) => {
      asked()
      return new Promise<Completion>((_, reject) => signal!.addEventListener("abort", () => reject(signal!.reason)))
    },
  }
  const opened = await openGateway()
  const voice = plainGenerator({
    policy: stuck as unknown as Sampler,
    codec: tokenizer,
    temperature: 1,
    maxCompletionTokens: 9,
  })
  const { apiKey } = opened.open({ generator: voice, models: ["m"], textOf: tokenText(tokenizer) })
  const answer = opened.fetch(`${opened.baseURL}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages: [user("x")] }),
  })
  await sampling
  await opened[Symbol.asyncDispose]()
  expect((await answer).status).toBe(401)
})

it("marks an episode in which completions did not arrive, and gives them to the retry", async () => {
  const agent: Agent<string> = async (task, context) => {
    const body = JSON.stringify({ model: context.model, messages: [user(task)] })
    const headers = { authorization: `Bearer ${context.openai.apiKey}`, "content-type": "application/json" }
    const url = `${context.openai.baseURL}/chat/completions`
    const gone = new AbortController()
    await context.openai.fetch(url, { method: "POST", headers, body, signal: gone.signal })
    gone.abort() // before a byte of the answer was read
    if (task === "again") await (await context.openai.fetch(url, { method: "POST", headers, body })).json()
    return { reward: 1 }
  }
  const { episodes } = await play(agent, ["again", "never"], ["a", "b"])
  expect(episodes.map(({ steps, metrics }) => [steps.map(({ text }) => text), metrics.undelivered])).toEqual([
    [["a"], 0],
    [["b"], 1],
  ])
})

it("a key is revoked with its episode, whose sampling is aborted", async () => {
  const kept: AgentContext[] = []
  const agent: Agent<string> = async (task, context) => {
    kept.push(context)
    await ask(context, [user(task)])
    return { reward: 1 }
  }
  await play(agent, ["x"], ["a"])
  await expect(ask(kept[0]!, [user("more")])).rejects.toThrow("unknown or has expired")
})

it("rejects options that change sampling, by name, and the episode continues", async () => {
  const refused: string[] = []
  const agent: Agent<string> = async (task, context) => {
    for (const more of [
      { temperature: 0.2 },
      { top_p: 0.9 },
      { logit_bias: { 1: 5 } },
      { wisdom: 1 },
      { max_tokens: 0 },
      { tools: [{ type: "web_search" }] },
    ])
      await ask(context, [user(task)], more).catch((error) => refused.push(String(error.message).split(" ")[0]!))
    await ask(context, [user(task)], { temperature: 1, top_p: 1, user: "me" })
    return { reward: 1 }
  }
  const { episodes } = await play(agent, ["x"], ["a"])
  expect(refused).toEqual(["temperature", "top_p", "logit_bias", "wisdom", "max_tokens", "tools[0].type"])
  expect(episodes[0]!.steps.length).toBe(1)
})

it("gives agents a signal that any number of requests may listen to", async () => {
  const warned = vi.fn()
  process.on("warning", warned)
  // As OpenAI's client: a listener per request, which stays.
  const agent: Agent<string> = async (_, { signal }) => {
    for (let request = 0; request < 20; request++) signal.addEventListener("abort", () => {}, { once: true })
    return { reward: 0 }
  }
  await play(agent, ["go"], ["a"])
  await new Promise(setImmediate)
  process.off("warning", warned)
  expect(warned).not.toHaveBeenCalled()
})
