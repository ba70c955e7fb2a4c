import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect, it, vi } from "vitest"
import type { Episode } from "../../src/rollout/episode.ts"
import type { AgentLoop, AgentLoopContext, EpisodeEnd } from "../../src/rollout/play.ts"
import { type RolloutSetup, rollout, type StepLocation } from "../../src/rollout/rollout.ts"
import { GigpoError } from "../../src/util/errors.ts"
import type { DoorsTask } from "./doors.ts"
import { FakePolicy } from "./fake-policy.ts"
import { expectNo, rolloutSetup, useTokenizer } from "./setup.ts"

const tokenizer = useTokenizer()

expectNo("unhandledRejection")

type Context = AgentLoopContext<DoorsTask>
type Agent = AgentLoop<DoorsTask>

async function run(agentLoop: Agent, changes: Partial<RolloutSetup<DoorsTask>> = {}): Promise<Episode[]> {
  const { environment: _, ...setup } = rolloutSetup(tokenizer.get())
  const { groups } = await rollout<DoorsTask>({ ...setup, agentLoop, ...changes })
  return groups.flatMap(({ episodes }) => [...episodes])
}

const say = (content: string) => [{ role: "user" as const, content }]

/** Three workers side by side, whose answers come in random order, then one that reads them. */
const council: Agent = async ({ sample, task, random, reward }) => {
  const workers = await Promise.all(
    task.rooms.map(async (room, agent) => {
      await sleep(0)
      return room + agent
    }),
  )
  const answers = await Promise.all(
    workers.map((room, agent) => sample(say(room), { agent, conversation: `worker ${agent}`, anchor: room })),
  )
  const summary = await sample(say(answers.map(({ text }) => text).join("")), { agent: "chair" })
  for (const { step, text } of answers) reward(step, Number(text === summary.text))
  return { reward: random.uniform(), metrics: { success: 1 } }
}

describe("an agent that plays episodes", () => {
  it.each([1, 7, 64])(
    "records the same with concurrency %i, whichever of its calls is answered first",
    async (concurrency) => {
      const expected = await run(council)
      expect(await run(council, { concurrency })).toEqual(expected)
      // Late answers: what a call says is the same, whatever waits before it.
      class Late extends FakePolicy {
        override async sample(request: Parameters<FakePolicy["sample"]>[0]) {
          const completion = await super.sample(request)
          await sleep(Math.random() * 5)
          return completion
        }
      }
      expect(await run(council, { concurrency, policy: new Late(tokenizer.get()) })).toEqual(expected)
      expect(new Set(expected.map(({ steps }) => steps.map(({ text }) => text).join(""))).size).toBeGreaterThan(4)
    },
  )

  it("records the same fields of steps as an environment", async () => {
    const told: StepLocation[] = []
    const [episode] = await run(council, { concurrency: 1, onStep: (_, place) => told.push(place) })
    expect(episode).toMatchObject({ outcome: "terminated", metrics: { success: 1 }, steps: { length: 4 } })
    expect(new Set(told.slice(0, 4).map(({ step }) => step))).toEqual(new Set([0, 1, 2, 3]))
    expect(told.slice(0, 5).map(({ member }) => member)).toEqual([0, 0, 0, 0, 1])
    for (const [index, step] of episode!.steps.slice(0, 3).entries()) {
      expect(step).toMatchObject({ agent: index, conversation: `worker ${index}`, valid: true, finishReason: "stop" })
      expect(step.observation).toEqual({ text: step.observation.anchor, anchor: step.observation.anchor })
      expect(tokenizer.get().decode(step.prompt)).toContain(`user\n${step.observation.text}<|im_end|>`)
      expect(tokenizer.get().decode(step.completion)).toBe(`${step.text}<|im_end|>`)
      expect([step.action, step.logProbs.length]).toEqual([step.text, step.completion.length])
      expect(step.entropies).toEqual(Float32Array.from(step.completion, (_, place) => 0.5 + place))
    }
    const chair = episode!.steps[3]!
    expect(chair).toMatchObject({
      agent: "chair",
      observation: {
        text: episode!.steps
          .slice(0, 3)
          .map(({ text }) => text)
          .join(""),
      },
    })
    expect(chair).not.toHaveProperty("conversation")
    expect(chair.reward).toBeGreaterThan(0)
    expect(episode!.return).toBe(episode!.steps.reduce((sum, { reward }) => sum + reward, 0))
  })

  it("receives its task, its index, its random generator, and the sizes of the policy", async () => {
    const seen = new Map<string, string>()
    await run(
      async ({ task, index, member, random, signal, maxPositions, temperature, maxCompletionTokens, policy }) => {
        expect([task.index, signal.aborted, maxPositions, temperature, maxCompletionTokens]).toEqual([
          index,
          false,
          200,
          1,
          4,
        ])
        expect([policy.vocabularySize, policy.deterministic]).toEqual([tokenizer.get().vocabularySize, true])
        seen.set(random.key.join(), `${index} ${member}`)
        return {}
      },
    )
    expect([...seen.values()].sort()).toEqual([0, 1, 2, 3].flatMap((t) => [0, 1, 2, 3].map((m) => `${t} ${m}`)))
  })

  it("can change sampling options, and parse completions", async () => {
    const options = {
      maxTokens: 1,
      parse: (completion: string) => ({ action: `go ${completion}`, valid: false }),
    }
    const [{ steps }] = (await run(async ({ sample }) => {
      const { action, valid, text } = await sample(say("x"), options)
      expect([action, valid]).toEqual([`go ${text}`, false])
      await sample(say("x"))
      await sample(say("y"))
      return {}
    })) as [Episode]
    expect(steps[0]).toMatchObject({
      completion: { length: 1 },
      finishReason: "length",
      valid: false,
      action: `go ${steps[0]!.text}`,
    })
    expect(steps[1]).toMatchObject({ completion: { length: 2 }, finishReason: "stop", valid: true })
    // Without an anchor the prompt identifies the state.
    expect(steps[0]!.observation.anchor).toBe(steps[1]!.observation.anchor)
    expect(steps[1]!.observation.anchor).not.toBe(steps[2]!.observation.anchor)
  })

  it("can add metrics to recorded steps", async () => {
    const one = { prompt: Int32Array.of(1), completion: Int32Array.of(2), logProbs: Float32Array.of(-1) }
    const metrics = { found: 0 }
    const [episode] = await run(async ({ record }) => {
      for (let i = 0; i < 2; i++) {
        metrics.found = i
        record({ ...one, metrics })
      }
      record({ ...one, temperature: 1 })
      return {}
    })
    expect(episode!.steps.map((step) => step.metrics)).toEqual([{ found: 0 }, { found: 1 }, undefined])
    expect(episode!.steps[2]).not.toHaveProperty("temperature")
    expect(episode!.steps[2]).not.toHaveProperty("entropies") // not recorded
  })

  it("can record completions that it sampled elsewhere, between other steps", async () => {
    const [{ steps }] = (await run(async ({ sample, record, policy, tokenizer, random }) => {
      const pending = sample(say("first"))
      const { tokens: prompt } = await tokenizer.encodeChat(say("second"))
      const { key } = random.derive("mine")
      const said = await policy.sample({ prompt, maxTokens: 4, stopTokens: tokenizer.eosTokens, key })
      const { tokens: completion, logProbs, entropies } = said
      expect(record({ prompt, completion, logProbs, entropies, reward: 2, agent: 7, observation: "seen" })).toBe(1)
      await pending
      return { last: { text: "over", anchor: "over" } }
    })) as [Episode]
    expect(steps).toMatchObject([{ reward: 0 }, { reward: 2, agent: 7, valid: true, observation: { text: "seen" } }])
    expect(steps[1]!.text).toMatch(/^[abc]$/)
    expect(steps[1]!.entropies).toEqual(steps[0]!.entropies)
  })

  it("can set the conversation and the order of its steps", async () => {
    const one = { prompt: Int32Array.of(1), completion: Int32Array.of(2), logProbs: Float32Array.of(-1) }
    const [episode] = await run(async ({ record }) => {
      const root = record({ ...one, order: "a", follows: null, action: "root" })
      record({ ...one, order: "c", follows: root, action: "later" })
      const first = record({ ...one, order: "b", follows: root, action: "first" })
      record({ ...one, order: "d", follows: first, action: "continues", retokenized: false })
      record({ ...one, order: "d", follows: null, action: "aside", retokenized: true })
      return { rewards: [1, 2, 3, 4, 5], reward: 10 }
    })
    expect(
      episode!.steps.map(({ action, conversation, reward, retokenized }) => [
        action,
        conversation,
        reward,
        retokenized,
      ]),
    ).toEqual([
      ["root", 0, 1, undefined],
      ["first", 0, 3, undefined],
      ["later", 1, 2, undefined],
      ["continues", 0, 4, false],
      ["aside", 2, 15, true],
    ])
  })

  it("reports the outcome of its episode", async () => {
    const two: Agent = async ({ sample, reward, index }) => {
      const { step } = await sample(say("a"))
      await sample(say("b"))
      reward(step, 5)
      const ends: (EpisodeEnd | null)[] = [
        { outcome: "truncated", last: { text: "late", anchor: "late" } },
        { rewards: [1, 2], reward: 0.5 },
        { reward: 1 },
        null,
      ]
      return ends[index]!
    }
    const episodes = await run(two, { groupSize: 1 })
    expect(episodes.map(({ outcome, steps }) => [outcome, ...steps.map(({ reward }) => reward)])).toEqual([
      ["truncated", 5, 0],
      ["terminated", 1, 2.5],
      ["terminated", 5, 1],
      ["excluded", 5, 0],
    ])
    expect(episodes.map(({ last }) => last?.text)).toEqual(["late", undefined, undefined, undefined])
    expect(episodes.map((episode) => episode.return)).toEqual([5, 3.5, 6, 5])
  })

  it("has the results of all its requests at its end, even of those it did not await", async () => {
    const episodes = await run(async ({ sample }) => {
      for (let i = 0; i < 5; i++) void sample(say(`${i}`))
      return { rewards: [0, 1, 2, 3, 4] }
    })
    for (const { steps } of episodes)
      expect(steps.map(({ observation, reward }) => observation.text === `${reward}`)).toEqual(Array(5).fill(true))
  })
})

describe("a fault of an agent affects only its episode", () => {
  const sound = async () => await run(council)
  /** The council, but what `odd` does for the second task. */
  const playWith = async (odd: Agent, changes: Partial<RolloutSetup<DoorsTask>> = {}): Promise<Episode[]> => {
    const episodes = await run((context) => (context.index === 1 ? odd(context) : council(context)), changes)
    expect(episodes.toSpliced(4, 4)).toEqual((await sound()).toSpliced(4, 4))
    return episodes.slice(4, 8)
  }
  const cause = new Error("boom")
  const raise = () => {
    throw cause
  }

  it("if it throws, with its steps kept", async () => {
    for (const fail of [raise as unknown as Agent, (async () => raise()) as Agent])
      for (const episode of await playWith(fail))
        expect(episode).toMatchObject({
          outcome: "failed",
          steps: [],
          error: { code: "ENVIRONMENT_FAILED", message: "agentLoop: boom", cause },
        })
    const later = await playWith(async ({ sample }) => {
      await sample(say("x"))
      return raise()
    })
    for (const episode of later) expect(episode).toMatchObject({ outcome: "failed", steps: { length: 1 } })
  })

  it("with its other calls in progress", async () => {
    const policy = new FakePolicy(tokenizer.get())
    const odd: Agent = async ({ sample }) => {
      await Promise.all([sample(say("x")), sample(say("y")), sleep(0).then(raise)])
      return {}
    }
    for (const { outcome } of await playWith(odd, { policy })) expect(outcome).toBe("failed")
    expect(policy.running).toBe(0)
  })

  const one = (context: Context, end: EpisodeEnd): EpisodeEnd => {
    context.record(step)
    return end
  }
  const step = { prompt: Int32Array.of(1), completion: Int32Array.of(2), logProbs: Float32Array.of(-1) }
  it.each<[string, (context: Context) => unknown, RegExp]>([
    ["nothing", () => undefined, /agentLoop\(\) ended with undefined; give an object, or null/],
    ["an unknown outcome", () => ({ outcome: "won" }), /the outcome 'won'; give "terminated" or "truncated"/],
    ["too few rewards", (context) => one(context, { rewards: [] }), /one reward per step, 1 in total/],
    ["a reward of NaN", (context) => one(context, { rewards: [Number.NaN] }), /rewards must be finite/],
    ["a last reward of NaN", (context) => one(context, { reward: Number.NaN }), /rewards must be finite/],
    ["a reward for no step", () => ({ reward: 1 }), /the episode has no step/],
    [
      "a metric of NaN",
      () => ({ metrics: { success: Number.NaN } }),
      /metrics must be finite numbers, but success is NaN/,
    ],
    [
      "a last observation without anchor",
      () => ({ last: { text: "x" } }),
      /the end of agentLoop\(\) returned no observation/,
    ],
    [
      "a step without tokens",
      ({ record }) => record({ ...step, completion: new Int32Array() }),
      /an Int32Array that is not empty/,
    ],
    [
      "a step without log-probabilities",
      ({ record }) => record({ ...step, logProbs: new Float32Array(2) }),
      /logProbs/,
    ],
    ["a step that pays NaN", ({ record }) => record({ ...step, reward: Number.NaN }), /rewards must be finite/],
    ["a reward for a step that is not there", ({ reward }) => reward(3, 1), /no step 3; 0 are reserved so far/],
    ["no messages", ({ sample }) => sample([]), /prompt must return at least one message/],
    ["no tokens", ({ sample }) => sample(say("x"), { maxTokens: 0 }), /maxTokens is 0/],
    [
      "a step at another temperature",
      ({ record }) => record({ ...step, temperature: 0.5 }),
      /temperature 0.5, but the temperature of the rollout is 1; sample at context.temperature/,
    ],
    [
      "a prompt outside the vocabulary",
      ({ record }) => record({ ...step, prompt: Int32Array.of(259) }),
      /the prompt of a step holds token 259, outside the policy's vocabulary of 259/,
    ],
    [
      "a reply outside it",
      ({ record }) => record({ ...step, completion: Int32Array.of(-1) }),
      /the completion .* token -1/,
    ],
    [
      "a log-probability of NaN",
      ({ record }) => record({ ...step, logProbs: Float32Array.of(Number.NaN) }),
      /logProbs must be finite numbers, but a step gave NaN/,
    ],
    [
      "too few entropies",
      ({ record }) => record({ ...step, entropies: new Float32Array() }),
      /entropies, they must be a Float32Array of one finite number per completion token \(1\)/,
    ],
    [
      "an entropy of NaN",
      ({ record }) => record({ ...step, entropies: Float32Array.of(Number.NaN) }),
      /entropies, they must be a Float32Array of one finite number/,
    ],
    [
      "a step longer than the model",
      ({ record }) => record({ ...step, prompt: new Int32Array(200) }),
      /have 201 tokens, but the model has 200 positions \(maxPositions\)/,
    ],
    ["a step of nothing", ({ record }) => record(null as never), /a recorded step must be an object, not null/],
    [
      "a step's metric of NaN",
      ({ record }) => record({ ...step, metrics: { found: Number.NaN } }),
      /metrics must be finite numbers, but found is NaN/,
    ],
    ["metrics that are a list", () => ({ metrics: [1] }), /metrics must be an object of numbers by their names/],
    [
      "a step whose metrics are a list",
      ({ record }) => record({ ...step, metrics: [1] as never }),
      /metrics must be an object of/,
    ],
    [
      "an end that is misspelt",
      () => ({ outcom: 1 }),
      /In the result of agentLoop\(\) "outcom" is not known \(did you mean "outcome"\?\)/,
    ],
    [
      "an option that is misspelt",
      ({ sample }) => sample(say("x"), { ancor: "x" } as object),
      /in the options of sample\(\) "ancor" is not known \(did you mean "anchor"\?\)/,
    ],
    [
      "a temperature of its own",
      ({ sample }) => sample(say("x"), { temperature: 0.5 } as object),
      /"temperature" is not known \(known: conversation, agent/,
    ],
    [
      "a recorded step that is misspelt",
      ({ record }) => record({ ...step, reword: 1 } as typeof step),
      /in a recorded step "reword" is not known \(did you mean "reward"\?\)/,
    ],
    [
      "a step that follows one that is not there",
      ({ record }) => record({ ...step, follows: 1 }),
      /A step follows 1, which is not a recorded step/,
    ],
    [
      "an order that is no text",
      ({ record }) => record({ ...step, order: 1 as never }),
      /order of a step is 1; give a string/,
    ],
    [
      "a parse that gives nothing",
      ({ sample }) => sample(say("x"), { parse: () => ({}) as never }),
      /parse\(\) must return/,
    ],
  ])("with %s", async (_, odd, message) => {
    for (const { outcome, error } of await playWith(async (context) => (await odd(context)) as EpisodeEnd)) {
      expect(outcome).toBe("failed")
      expect(error!.message).toMatch(message)
    }
  })

  it("if the policy rejects a request", async () => {
    class Strict extends FakePolicy {
      override async sample(request: Parameters<FakePolicy["sample"]>[0]) {
        if (request.maxTokens > 100) throw new GigpoError("BAD_ARGUMENT", "too long")
        return await super.sample(request)
      }
    }
    const odd: Agent = async ({ policy }) => {
      await policy.sample({ prompt: Int32Array.of(1), maxTokens: 101, stopTokens: [], key: [0, 0] })
      return {}
    }
    for (const { error } of await playWith(odd, { policy: new Strict(tokenizer.get()) }))
      expect(error).toMatchObject({ code: "BAD_ARGUMENT", message: "too long" })
  })

  const request = { prompt: Int32Array.of(1), maxTokens: 1, stopTokens: [], key: [0, 0] as const }
  it.each<[string, object, RegExp]>([
    ["stop tokens of null", { stopTokens: null }, /^stopTokens must be a list of token ids; give \[\] for none\.$/],
    ["no key", { key: undefined }, /^key must be two 32-bit integers/],
    ["an empty prompt", { prompt: new Int32Array() }, /^prompt is empty; give at least one token\.$/],
  ])("with a request of %s, whatever the engine makes of it", async (_, wrong, message) => {
    const odd: Agent = async ({ policy }) => {
      await policy.sample({ ...request, ...wrong })
      return {}
    }
    class Careless extends FakePolicy {
      override async sample(asked: Parameters<FakePolicy["sample"]>[0]) {
        expect([...asked.stopTokens, ...asked.key, asked.prompt[0]].every(Number.isFinite)).toBe(true)
        return await super.sample(asked)
      }
    }
    for (const { outcome, error } of await playWith(odd, { policy: new Careless(tokenizer.get()) })) {
      expect([outcome, error!.code]).toEqual(["failed", "BAD_ARGUMENT"])
      expect(error!.message).toMatch(message)
    }
  })

  it("and aborts its requests with separate signals", async () => {
    const reasons: unknown[] = []
    class Slow extends FakePolicy {
      override async sample(asked: Parameters<FakePolicy["sample"]>[0]) {
        if (asked.maxTokens !== 3) return await super.sample(asked)
        return await new Promise<never>((_, reject) => {
          asked.signal!.addEventListener("abort", () => {
            reasons.push(asked.signal!.reason)
            reject(asked.signal!.reason)
          })
        })
      }
    }
    const policy = new Slow(tokenizer.get())
    const own = new AbortController()
    const odd: Agent = async ({ policy, member }) => {
      const asked = policy.sample({ ...request, maxTokens: 3, signal: own.signal })
      void asked.catch(() => {})
      return member === 0 ? raise() : {}
    }
    const [first, ...others] = await playWith(odd, { policy })
    expect([first!.outcome, ...others.map(({ outcome }) => outcome)]).toEqual([
      "failed",
      ...Array(3).fill("terminated"),
    ])
    expect(reasons).toHaveLength(4)
    const stopped = await playWith(
      async ({ policy }) => {
        await policy.sample({ ...request, maxTokens: 3, signal: AbortSignal.timeout(5) })
        return {}
      },
      { policy },
    )
    for (const { outcome } of stopped) expect(outcome).toBe("failed")
  })

  it("ends the episode with its steps, if a prompt does not fit or there are too many steps", async () => {
    const long = await playWith(async ({ sample }) => {
      for (let words = 1; ; words *= 2) await sample(say("word ".repeat(words)))
    })
    for (const { outcome, steps, error } of long)
      expect([outcome, steps.length, error]).toEqual(["overflow", 6, undefined])
    const many = await playWith(async ({ sample }) => {
      for (;;) await sample(say("again"))
    })
    for (const { outcome, steps } of many) expect([outcome, steps.length]).toEqual(["truncated", 50])
  })

  it("ends the episode with the results of concurrent requests, if a prompt does not fit", async () => {
    const odd: Agent = async ({ sample }) => {
      await Promise.all([sample(say("x")), sample(say("long ".repeat(90))), sample(say("y"))])
      return {}
    }
    for (const { outcome, steps } of await playWith(odd))
      expect([outcome, ...steps.map(({ observation }) => observation.text)]).toEqual(["overflow", "x", "y"])
  })

  it("can be caught to end the episode normally", async () => {
    const odd: Agent = async ({ sample }) => {
      let steps = 0
      for (;;) {
        const said = await sample(say("again")).catch(() => undefined)
        if (!said) return { outcome: "truncated", reward: steps }
        steps++
      }
    }
    for (const episode of await playWith(odd)) expect(episode).toMatchObject({ outcome: "truncated", return: 50 })
  })

  it("does not delay the end of the rollout, even if it retries forever", async () => {
    const controller = new AbortController()
    const reason = new Error("Ctrl-C")
    let over = false
    const stubborn: Agent = async ({ sample, policy }) => {
      while (!over) {
        await sample(say("x")).catch(() => {})
        const request = { prompt: Int32Array.of(1), maxTokens: 1, stopTokens: [], key: [0, 0] as const }
        await policy.sample(request).catch(() => {})
      }
      return {}
    }
    setTimeout(() => controller.abort(reason), 20)
    await expect(run(stubborn, { signal: controller.signal, maxSteps: 2 })).rejects.toBe(reason)
    over = true
  })

  it("makes later calls throw an error after the end of its episode", async () => {
    const late: Promise<PromiseSettledResult<unknown>[]>[] = []
    await playWith(async ({ sample, record, reward }) => {
      const after = sleep(20)
      const calls = [() => sample(say("late")), () => record(step), () => reward(0, 1)]
      late.push(Promise.allSettled(calls.map((call) => after.then(call))))
      return {}
    })
    const results = (await Promise.all(late)).flat()
    const message = expect.stringMatching(/^The episode is over/)
    expect(results).toHaveLength(12)
    for (const result of results)
      expect(result).toMatchObject({ status: "rejected", reason: { code: "BAD_ARGUMENT", message } })
  })
})

describe("a rollout of agents", () => {
  it("ends with a failure of the policy, even if the agent catches it", async () => {
    const policy = new FakePolicy(tokenizer.get())
    policy.failure = { at: 9, error: new GigpoError("DEVICE_LOST", "gone") }
    const stubborn: Agent = async ({ sample }) => {
      await sample(say("x")).catch(() => {})
      await sample(say("y")).catch(() => {})
      return {}
    }
    await expect(run(stubborn, { policy })).rejects.toMatchObject({ code: "DEVICE_LOST" })
    expect(policy.running).toBe(0)
    const deaf: Agent = async ({ sample }) => {
      await sample(say("x")).catch(() => {})
      return await new Promise<never>(() => {})
    }
    const failing = new FakePolicy(tokenizer.get())
    failing.failure = { at: 3, error: new GigpoError("DEVICE_LOST", "gone") }
    await expect(run(deaf, { policy: failing })).rejects.toMatchObject({ code: "DEVICE_LOST" })
  })

  it("continues if only a request failed because no token satisfies its constraint", async () => {
    const policy = new FakePolicy(tokenizer.get())
    policy.failure = { at: 1, error: new GigpoError("CONSTRAINT_FAILED", "No token is allowed.") }
    const episodes = await run(
      async ({ sample }) => {
        await sample(say("x"))
        return {}
      },
      { policy },
    )
    const codes = episodes.map(({ error }) => error?.code)
    expect(codes.filter((code) => code !== undefined)).toEqual(["CONSTRAINT_FAILED"])
  })

  it("aborts every agent if aborted, and does not wait for hanging ones", async () => {
    const controller = new AbortController()
    const reason = new Error("Ctrl-C")
    const policy = new FakePolicy(tokenizer.get())
    let [told, started] = [0, 0]
    const endless: Agent = async ({ sample, signal }) => {
      started++
      signal.addEventListener("abort", () => told++)
      for (let i = 0; i < 3; i++) await sample(say("x"))
      return await new Promise<never>(() => {})
    }
    const running = run(endless, { signal: controller.signal, policy })
    await vi.waitFor(() => expect(started).toBe(16), 10_000)
    controller.abort(reason)
    await expect(running).rejects.toBe(reason)
    expect([told, policy.running]).toEqual([16, 0])
  })

  it("ends with the error of an observer that throws", async () => {
    const onStep = () => {
      throw new Error("display broke")
    }
    await expect(run(council, { onStep })).rejects.toThrow("display broke")
    await expect(rollout(rolloutSetup(tokenizer.get(), { onStep }))).rejects.toThrow("display broke")
  })

  it("supports score and keep of groups, but no hooks of an environment's loop", async () => {
    const hooks = { score: (group: { episodes: readonly Episode[] }) => group.episodes, keep: () => true }
    expect(await run(council, { hooks })).toEqual(await run(council))
    for (const name of ["start", "onTurn"] as const)
      await expect(run(council, { hooks: { [name]: () => ({}) as never } })).rejects.toMatchObject({
        code: "BAD_ARGUMENT",
        message: `hooks.${name} applies to the loop of an environment; leave it out where an agent loop runs the episode.`,
      })
  })
})
