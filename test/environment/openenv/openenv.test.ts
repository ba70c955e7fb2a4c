import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { completionFormat } from "../../../src/environment/agent.ts"
import type { PastStep } from "../../../src/environment/environment.ts"
import { openenv } from "../../../src/environment/openenv/openenv.ts"
import { type OpenEnvOptions, type OpenEnvTask, openEnvFields } from "../../../src/environment/openenv/options.ts"
import { serverAddress } from "../../../src/environment/openenv/server-address.ts"
import { checkEnvironment } from "../../../src/rollout/check-environment.ts"
import { rolloutDefaults } from "../../../src/rollout/options.ts"
import { Random } from "../../../src/util/random.ts"
import { error, observation, type ServerOptions } from "./server.ts"
import { released, serve, sockets, start, timers } from "./setup.ts"

describe("openenv", () => {
  it("fulfils the environment contract", async () => {
    const server = await serve()
    await checkEnvironment(openenv({ url: server.url }))
    await checkEnvironment(openenv({ url: server.url, actionField: "command", rules: false, thinking: "off" }))
    await released(server)
  })

  it("resets with the seed, steps, and reads observations, rewards and ends", async () => {
    const server = await serve()
    const episode = await start({ url: server.url.replace("http", "ws") })
    expect(episode.first).toEqual({ text: "start seed=7", anchor: "start seed=7", actions: ["go", "stop"] })
    expect(await episode.step("go")).toEqual({
      observation: { text: "you go", anchor: "you go", actions: ["go", "stop"] },
      reward: 0,
      terminated: false,
      truncated: false,
      metrics: { success: 0, "rejected-actions": 0 },
    })
    expect(await episode.step("stop")).toMatchObject({ reward: 1, terminated: true, metrics: { success: 1 } })
    await expect(episode.step("go")).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: /episode has ended/ })
    await episode[Symbol.asyncDispose]?.()
    await expect(episode.step("go")).rejects.toMatchObject({ code: "DISPOSED" })
    await released(server)
    expect(server.received).toEqual([
      { type: "reset", data: { seed: 7 } },
      { type: "step", data: { command: "go" } },
      { type: "step", data: { command: "stop" } },
      { type: "close" },
    ])
  })

  it.each([undefined, null, "x", {}, { seed: "7" }, { seed: 1.5 }])("rejects the task %j", async (task) => {
    const context = { signal: new AbortController().signal, random: new Random(1) }
    await expect(openenv().start(task as unknown as OpenEnvTask, context)).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringContaining("integer as its seed"),
    })
  })

  it("times out, by default, before the training loop", () => {
    for (const limit of [openEnvFields.messageTimeout, openEnvFields.capacityTimeout])
      expect(limit.default).toBeLessThan(rolloutDefaults.environmentTimeout)
  })

  it("truncates at maxSteps", async () => {
    const server = await serve()
    const episode = await start({ url: server.url, maxSteps: 2 })
    expect(await episode.step("go")).toMatchObject({ terminated: false, truncated: false })
    expect(await episode.step("go")).toMatchObject({ terminated: false, truncated: true, metrics: { success: 0 } })
    await expect(episode.step("go")).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    await episode[Symbol.asyncDispose]?.()
  })

  it("counts an end at the last step as terminated", async () => {
    const server = await serve()
    const episode = await start({ url: server.url, maxSteps: 1 })
    expect(await episode.step("stop")).toMatchObject({ terminated: true, truncated: false, metrics: { success: 1 } })
    await episode[Symbol.asyncDispose]?.()
  })

  it.each([
    [null, 0],
    [true, 1],
    [false, 0],
    [-2.5, -2.5],
    [undefined, 0],
  ])("takes the reward %j as %d", async (reward, expected) => {
    const server = await serve({
      answer: ({ type }) => (type === "step" ? observation("x", reward, false) : undefined),
    })
    const episode = await start({ url: server.url })
    expect((await episode.step("go")).reward).toBe(expected)
    await episode[Symbol.asyncDispose]?.()
  })

  it("supports options for requests and responses", async () => {
    const server = await serve({
      answer: ({ type }) =>
        type === "step" ? observation("moved", 0.2, true, { state: { x: 1 }, moves: ["e4"] }) : undefined,
    })
    const fields = { textField: "text", anchorField: "state", actionsField: "moves" }
    const environment = openenv({
      url: server.url,
      reset: ({ seed }) => ({ seed: seed + 1, level: "easy" }),
      act: (action) => ({ command: action.toUpperCase() }),
      success: ({ reward, done }) => done && reward > 0.5,
      observe: (seen) => ({ text: `I see ${(seen as { text: string }).text}`, actions: ["one"] }),
    })
    const episode = await environment.start(
      { seed: 1 },
      { signal: new AbortController().signal, random: new Random(1) },
    )
    expect(episode.first).toEqual({ text: "I see start seed=2", anchor: "I see start seed=2", actions: ["one"] })
    expect((await episode.step("go")).metrics?.success).toBe(0)
    await episode[Symbol.asyncDispose]?.()
    await released(server)
    expect(server.received.slice(0, 2)).toEqual([
      { type: "reset", data: { seed: 2, level: "easy" } },
      { type: "step", data: { command: "GO" } },
    ])

    await expect(start({ url: server.url, ...fields })).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: /anchorField is "state", but the observation has the fields text, admissible/,
    })
    const other = await start({ url: server.url, textField: "text" })
    await other[Symbol.asyncDispose]?.()
    await released(server)
  })

  it("reads named fields, and formats values other than text as JSON", async () => {
    const answer: ServerOptions["answer"] = ({ type }) =>
      type === "reset" ? observation("moved", 0, false, { board: [[0, 1]], state: { x: 1 }, moves: ["e4"] }) : undefined
    const server = await serve({ answer })
    const episode = await start({ url: server.url, textField: "board", anchorField: "state", actionsField: "moves" })
    expect(episode.first).toEqual({ text: "[[0,1]]", anchor: '{"x":1}', actions: ["e4"] })
    await episode[Symbol.asyncDispose]?.()
  })

  it.each([
    [{ prompt: "Guess.", messages: [] }, "Guess."],
    [{ message: "hi", text: " " }, "hi"],
    [{ question: "2+2?", score: 0 }, "2+2?"],
    [{ info_state: [0, 1], legal_actions: [2] }, '{"info_state":[0,1],"legal_actions":[2]}'],
    ["plain", "plain"],
    [null, "null"],
  ])("guesses what %j shows", async (seen, text) => {
    const data = { observation: seen, reward: null, done: false }
    const server = await serve({ answer: ({ type }) => (type === "reset" ? { type: "observation", data } : undefined) })
    const episode = await start({ url: server.url })
    expect(episode.first).toEqual({ text, anchor: text })
    await episode[Symbol.asyncDispose]?.()
  })

  it("preserves numbers and keys of the server's JSON at any depth", async () => {
    const seen = '{"id": 2512292042121000001, "10": 20.0, "2": [1e-07, "\\u00e9"]}'
    const shown = '{"id":2512292042121000001,"10":20.0,"2":[1e-07,"é"]}'
    const deep = `${"[".repeat(200_000)}1.0${"]".repeat(200_000)}`
    for (const [observation, options, text] of [
      [seen, {}, shown],
      [`{"board": ${seen}}`, { textField: "board" }, shown],
      ['{"id": 2512292042121000001, "x": 20.0}', { textField: "id", anchorField: "x" }, "2512292042121000001"],
      [deep, {}, deep],
    ] as const) {
      const answer = `{"type": "observation", "data": {"observation": ${observation}, "reward": null, "done": false}}`
      const server = await serve({ answer: ({ type }) => (type === "reset" ? answer : undefined) })
      const episode = await start({ url: server.url, ...options })
      expect(episode.first.text).toBe(text)
      expect(episode.first.anchor).toBe("anchorField" in options ? "20.0" : text)
      await episode[Symbol.asyncDispose]?.()
    }
  })

  it.each([
    ["http://127.0.0.1:8000", "ws://127.0.0.1:8000/ws", "http://127.0.0.1:8000/schema"],
    ["ws://host:1/ws", "ws://host:1/ws", "http://host:1/schema"],
    ["https://a.hf.space/", "wss://a.hf.space/ws", "https://a.hf.space/schema"],
    ["wss://host/env/one/ws/", "wss://host/env/one/ws", "https://host/env/one/schema"],
    ["https://me:secret@host/?key=1#top", "wss://me:secret@host/ws?key=1", "https://host/schema?key=1"],
    ["ws://me:secret@[::1]:8000", "ws://me:secret@[::1]:8000/ws", "http://[::1]:8000/schema"],
    ["http://me:secret@host/?key=1#top", "ws://me:secret@host/ws?key=1", "http://host/schema?key=1", true],
  ])("takes the address %s", (url, socket, schema, plainHttp = false) => {
    const address = serverAddress(url, plainHttp)
    expect([address.socket.href, address.schema.href]).toEqual([socket, schema])
    expect(address.name).toBe(socket.replace("me:secret@", "").replace("?key=1", ""))
  })

  it.each(["ws://me:secret@host:8000", "http://me:secret@host/ws", "http://secret@host", "http://:secret@host"])(
    "sends the password of %s unencrypted only with the option plainHttp",
    (url) => {
      const refused = { code: "BAD_ARGUMENT", message: expect.stringMatching(/unencrypted.*plainHttp/s) }
      expect(() => openenv({ url })).toThrow(expect.objectContaining(refused))
      expect(() => openenv({ url })).not.toThrow(/secret/)
      expect(openenv({ url, plainHttp: true }).name).toBe("openenv")
    },
  )

  it("makes 8 episodes wait for 2 slots", async () => {
    const server = await serve({ slots: 2 })
    const environment = openenv({ url: server.url })
    const rewards = await Promise.all(
      Array.from({ length: 8 }, async (_, seed) => {
        const context = { signal: new AbortController().signal, random: new Random(seed) }
        const episode = await environment.start({ seed }, context)
        expect(episode.first.text).toBe(`start seed=${seed}`)
        await episode.step("go")
        await sleep(20)
        const { reward } = await episode.step("stop")
        await episode[Symbol.asyncDispose]?.()
        return reward
      }),
    )
    expect(rewards).toEqual([1, 1, 1, 1, 1, 1, 1, 1])
    await released(server)
    expect(server.used().most).toBe(2)
    expect(server.used().refused).toBeGreaterThanOrEqual(6)
  })

  it("closes the connection before it reconnects, even if the server does not", async () => {
    let full = 3
    const server = await serve({
      slots: 10,
      answer: ({ type }) => (type === "reset" && full-- > 0 ? error("CAPACITY_REACHED", "later") : undefined),
    })
    const episode = await start({ url: server.url })
    while (server.used().now > 1) await sleep(5)
    expect(server.received.filter((message) => (message as { type: string }).type === "reset")).toHaveLength(4)
    await episode[Symbol.asyncDispose]?.()
    await released(server)
  })

  it("leaves no sockets or timers", async () => {
    const server = await serve()
    const before = [sockets(), timers()] as const
    const episode = await start({ url: server.url })
    await episode.step("go")
    expect(sockets()).toBeGreaterThan(before[0])
    await episode[Symbol.asyncDispose]?.()
    await episode[Symbol.asyncDispose]?.()
    await released(server)
    while (sockets() > before[0]) await sleep(5)
    expect(timers()).toBeLessThanOrEqual(before[1])
  })

  it.each([
    [{ url: "127.0.0.1:8000" }, "url must be an address"],
    [{ url: "ftp://host" }, "url must be an address"],
    [{ url: "" }, "url must be a non-empty string"],
    [{ maxSteps: 0 }, "maxSteps must be an integer from 1 to 10000, not 0"],
    [{ messageTimeout: 0 }, "messageTimeout"],
    [{ capacityTimeout: -1 }, "capacityTimeout"],
    [{ maxFrameBytes: 1.5 }, "maxFrameBytes"],
    [{ textField: 3 }, "textField must be a non-empty string"],
    [{ act: "command" }, "act must be a function"],
    [{ action_field: "x" }, "action_field is not an option; did you mean actionField?"],
  ])("rejects the options %j", (options, message) => {
    expect(() => openenv(options as OpenEnvOptions)).toThrow(
      expect.objectContaining({ code: "BAD_CONFIG", message: expect.stringContaining(`openenv: ${message}`) }),
    )
  })
})

describe("prompts and completions", () => {
  const now = { text: "Board", anchor: "Board" }
  const chess = { ...now, actions: ["Nf3", "nf3x", "e4"] }
  const history: PastStep[] = [{ observation: now, completion: "<action>e4</action>", action: "e4" }]

  it.each([
    ["<think>.</think><action>nf3</action>", chess, "Nf3", true],
    ["<think>.</think><action> Qh5 </action>", now, "Qh5", true],
    ["<action>Qh5</action>", now, "Qh5", false],
    ["Qh5", now, "Qh5", false],
    ["<think>.</think><action>nf3</action>", { ...now, actions: ["nf3", "NF3"] }, "nf3", true],
    ["<think>.</think><ACTION>İ Go</ACTION>", now, "İ Go", true],
    ["</action><action>", now, "", false],
  ])("parse reads %j", (completion, seen, action, valid) => {
    expect(openenv().parse(completion, seen)).toEqual({ action, valid })
  })

  it("the prompt contains history, observation and possible actions", () => {
    const goal = "You act in an environment, one step at a time, to reach the goal that it sets."
    expect(openenv().prompt({ seed: 1 }, history, chess)[0]!.content.split("\n\n")).toEqual([
      goal,
      "[Observation 1: 'Board', Action 1: 'e4']",
      "Step 2, now:\nBoard",
      "Possible actions:\nNf3\nnf3x\ne4",
      completionFormat("required", "one of the possible actions"),
    ])
    expect(openenv({ thinking: "off" }).prompt({ seed: 1 }, [], now)[0]!.content.split("\n\n")).toEqual([
      goal,
      "Step 1, now:\nBoard",
      completionFormat("off", "the text of your next action"),
    ])
    expect(openenv({ rules: false }).prompt({ seed: 1 }, [], now)[0]!.content).toBe("Board")
    expect(openenv({ rules: false, history: 0 }).prompt({ seed: 1 }, history, chess)[0]!.content).toBe(
      "Board\n\nPossible actions:\nNf3\nnf3x\ne4",
    )
  })

  it("tasks are seeds", () => {
    const [test] = openenv().tasks("test", new Random(1))
    expect(test).toEqual({ seed: 65536 })
    const [train] = openenv().tasks("train", new Random(1))
    expect(train!.seed).toBeLessThan(65536)
  })
})
